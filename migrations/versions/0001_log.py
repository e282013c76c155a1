"""The log, its marks and the outbox."""

import uuid

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TEXT

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(TEXT(collation="C"), "postgresql")
_RV = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the three tables and the row of marks."""
    _create_log()
    meta = op.create_table(
        "k_meta",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False, comment="always 1"),
        sa.Column("compact_rv", sa.BigInteger(), nullable=False),
        sa.Column("outbox_version", sa.BigInteger(), nullable=False),
        sa.Column("cluster_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_k_meta"),
    )
    op.bulk_insert(meta, [{"id": 1, "compact_rv": 0, "outbox_version": 0, "cluster_id": str(uuid.uuid4())}])
    op.create_table(
        "k_outbox",
        sa.Column("repository", _KEY, nullable=False),
        sa.Column("revision", _KEY, nullable=False),
        sa.Column("oid", _KEY, nullable=False, comment="empty for the head of the parcel"),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("repository", "revision", "oid", name="pk_k_outbox"),
    )
    op.create_index("ix_k_outbox_object", "k_outbox", ["repository", "oid"])
    if op.get_bind().dialect.name == "postgresql":
        _tune_postgresql()


def downgrade() -> None:
    """Drop everything, contents included."""
    op.drop_table("k_outbox")
    op.drop_table("k_meta")
    op.drop_table("k_log")


def _create_log() -> None:
    op.create_table(
        "k_log",
        sa.Column("rv", _RV, autoincrement=False, nullable=False),
        sa.Column("gr", _KEY, nullable=False),
        sa.Column("ns", _KEY, nullable=False),
        sa.Column("name", _KEY, nullable=False),
        sa.Column("op", sa.SmallInteger(), nullable=False),
        sa.Column("prev_rv", sa.BigInteger(), nullable=False),
        sa.Column("create_rv", sa.BigInteger(), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("ts", sa.BigInteger(), nullable=False, comment="milliseconds since 1970, an aid to audits"),
        sa.PrimaryKeyConstraint("rv", name="pk_k_log"),
        sa.UniqueConstraint("gr", "ns", "name", "prev_rv", name="uq_k_log_compare_and_swap"),
    )
    op.create_index("ix_k_log_key", "k_log", ["gr", "ns", "name", "rv"])


def _tune_postgresql() -> None:
    # Storage parameters have no form in Core. Bodies are read whole, so compressing them only costs time; the log is
    # rewritten at its old end only, which the default scale factor would notice too late.
    op.execute("ALTER TABLE k_log ALTER COLUMN body SET STORAGE EXTERNAL")
    op.execute("ALTER TABLE k_log SET (autovacuum_vacuum_scale_factor = 0.02)")
    op.execute("ALTER TABLE k_outbox ALTER COLUMN data SET STORAGE EXTERNAL")
