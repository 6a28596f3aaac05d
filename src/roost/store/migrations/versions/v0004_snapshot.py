"""A table for snapshots: the content at some positions of the feed, to rebuild it at any later position."""

from alembic import op

revision = "0004"
down_revision = "0003"

# Part 0 is the head of a snapshot, written after all other parts. Without its head, a snapshot is incomplete.
_SNAPSHOT = """
CREATE TABLE snapshot (
    position {integer} NOT NULL, part {integer} NOT NULL, made_at_s {real} NOT NULL, seen TEXT NOT NULL,
    body {bytes} NOT NULL, PRIMARY KEY (position, part))
"""
# An empty database gets an empty snapshot. A database with content has none until a process writes the first.
_EMPTY = """
INSERT INTO snapshot (position, part, made_at_s, seen, body) SELECT 0, 0, {now}, {seen}, {nothing}
WHERE NOT EXISTS (SELECT 1 FROM feed) AND NOT EXISTS (SELECT 1 FROM symbol)
"""

_SQLITE = {
    "integer": "INTEGER",
    "real": "REAL",
    "bytes": "BLOB",
    "now": "(julianday('now') - 2440587.5) * 86400.0",
    "seen": "''",
    "nothing": "x''",
}
_POSTGRESQL = {
    "integer": "BIGINT",
    "real": "DOUBLE PRECISION",
    "bytes": "BYTEA",
    "now": "extract(epoch FROM now())",
    "seen": "pg_current_snapshot()::text",
    "nothing": "''",
}


def upgrade() -> None:
    """Create the table."""
    connection = op.get_bind()
    words = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    for statement in (_SNAPSHOT, _EMPTY):
        connection.exec_driver_sql(statement.format(**words).strip())
