"""A table for the changes of clients, and the client of each operation."""

from alembic import op

revision = "0006"
down_revision = "0005"

# A client lists changes by time, also of one object. The partial index is for events: it leaves out claims and
# releases, which are by far the most.
_BOTH = """
CREATE TABLE change_record (
    id {key}, at_s {real} NOT NULL, kind TEXT NOT NULL, object TEXT NOT NULL, user_id TEXT NOT NULL,
    project_id TEXT NOT NULL, roles TEXT NOT NULL, request_id TEXT NOT NULL, body {bytes} NOT NULL);
CREATE INDEX change_record_at ON change_record (at_s, id);
CREATE INDEX change_record_object ON change_record (object, at_s, id);
CREATE INDEX change_record_rare ON change_record (at_s, id)
    WHERE kind NOT IN ('allocation.update', 'allocation.delete', 'decision.create', 'decision.next',
        'instance.release');
ALTER TABLE operation ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
ALTER TABLE operation ADD COLUMN project_id TEXT NOT NULL DEFAULT '';
ALTER TABLE operation ADD COLUMN request_id TEXT NOT NULL DEFAULT ''
"""
_SQLITE = {"key": "INTEGER PRIMARY KEY NOT NULL", "real": "REAL", "bytes": "BLOB"}
_POSTGRESQL = {"key": "BIGINT PRIMARY KEY", "real": "DOUBLE PRECISION", "bytes": "BYTEA"}


def upgrade() -> None:
    """Create the table, and add the columns."""
    connection = op.get_bind()
    words = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    for statement in _BOTH.format(**words).split(";"):
        connection.exec_driver_sql(statement.strip())
