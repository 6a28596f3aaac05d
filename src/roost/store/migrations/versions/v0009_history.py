"""The history of the fleet: its amounts by class and zone, and its decisions, minute by minute."""

from alembic import op

revision = "0009"
down_revision = "0008"

_BOTH = """
CREATE TABLE history (
    minute {integer} NOT NULL, part TEXT NOT NULL, amounts {bytes} NOT NULL, counts {bytes} NOT NULL,
    PRIMARY KEY (minute, part))
"""


def upgrade() -> None:
    """Create the table."""
    connection = op.get_bind()
    is_sqlite = connection.dialect.name == "sqlite"
    words = {"integer": "INTEGER", "bytes": "BLOB"} if is_sqlite else {"integer": "BIGINT", "bytes": "BYTEA"}
    connection.exec_driver_sql(_BOTH.format(**words).strip())
