"""Alembic's migrations of the log database, run by ``storage.sql.migrate``; add one with every change of the schema."""
