"""Who of several replicas had a repository's turn last. Additive: a server of schema 0001 works beside one of this."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TEXT

revision = "0001.1"
down_revision = "0001"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table, empty: a replica that finds no row takes it that somebody else was there."""
    op.create_table(
        "k_turn",
        sa.Column("key", _KEY, nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_k_turn"),
    )


def downgrade() -> None:
    """Drop the table; nothing is lost but the fence of replicas that are paused at this moment."""
    op.drop_table("k_turn")
