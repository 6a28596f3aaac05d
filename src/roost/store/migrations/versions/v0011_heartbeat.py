"""Heartbeats: the live processes of a database, with the versions of their programs.

A table of its own, so that heartbeats abort no commit.
"""

import sqlalchemy
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Create the table."""
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
