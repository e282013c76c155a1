"""What Alembic runs around the migrations: it uses the connection that ``storage.sql.migrate`` hands it."""

from alembic import context

from storage.sql.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite cannot alter a column; Alembic then copies the table.
    render_as_batch=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
