"""Which life of the database this is: it changes when a backup is put back. Additive: a server of 0001.1 works beside one of this."""

import sqlalchemy as sa
from alembic import op

revision = "0001.2"
down_revision = "0001.1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, empty: as far as anybody knows no backup was put back."""
    op.add_column("k_meta", sa.Column("incarnation", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Drop the column; nothing is lost but that a backup was put back, which matters until the next full look at Git."""
    with op.batch_alter_table("k_meta") as marks:
        marks.drop_column("incarnation")
