"""Heartbeats, and the oldest program that may serve the database.

Heartbeats have a table of their own, so that they abort no commit.
"""

import sqlalchemy
from alembic import op

revision = "0011"
down_revision = "0010"
phase = "expand"

_OLDEST = "INSERT INTO compatibility (readable_from) SELECT '0010' WHERE NOT EXISTS (SELECT 1 FROM compatibility)"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "heartbeat",
        sqlalchemy.Column("process", sqlalchemy.BigInteger, primary_key=True, autoincrement=False),
        sqlalchemy.Column("version", sqlalchemy.Text, nullable=False),
        sqlalchemy.Column("schema", sqlalchemy.Text, nullable=False),
        sqlalchemy.Column("machine", sqlalchemy.Text, nullable=False),
        sqlalchemy.Column("started_at_s", sqlalchemy.Double, nullable=False),
        sqlalchemy.Column("heard_at_s", sqlalchemy.Double, nullable=False),
        sqlalchemy.Column("decided_at_s", sqlalchemy.Double),
        if_not_exists=True,
    )
    op.create_table(
        "compatibility", sqlalchemy.Column("readable_from", sqlalchemy.Text, nullable=False), if_not_exists=True
    )
    op.execute(_OLDEST)
