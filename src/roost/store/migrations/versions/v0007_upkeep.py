"""The last audit and the last backup, and the row that a server writes to check that the database is writable."""

from alembic import op

revision = "0007"
down_revision = "0006"

_BOTH = """
CREATE TABLE upkeep (
    name TEXT PRIMARY KEY NOT NULL, at_s {real} NOT NULL, findings {integer} NOT NULL, size_bytes {integer} NOT NULL)
"""


def upgrade() -> None:
    """Create the table."""
    connection = op.get_bind()
    is_sqlite = connection.dialect.name == "sqlite"
    words = {"real": "REAL", "integer": "INTEGER"} if is_sqlite else {"real": "DOUBLE PRECISION", "integer": "BIGINT"}
    connection.exec_driver_sql(_BOTH.format(**words).strip())
