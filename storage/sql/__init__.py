"""The append-only log in SQLite or PostgreSQL."""
