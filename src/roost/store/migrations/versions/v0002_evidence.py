"""Tables for decisions, and for the feed of changes."""

from alembic import op

revision = "0002"
down_revision = "0001"

# An index that grows at its end is cheap to write. A search by uuid reads the whole index, at about ten million entries
# per second. The next version has a better index.
_SQLITE = """
CREATE TABLE decision (
    id INTEGER PRIMARY KEY NOT NULL, uuid BLOB NOT NULL, decided_at_s REAL NOT NULL, outcome TEXT NOT NULL,
    project_id TEXT NOT NULL, settings_id INTEGER NOT NULL, hosts TEXT NOT NULL, reason TEXT NOT NULL,
    body BLOB NOT NULL);
CREATE INDEX decision_id_uuid ON decision (id, uuid);
CREATE TABLE feed (position INTEGER PRIMARY KEY NOT NULL, written_at_s REAL NOT NULL, body BLOB NOT NULL)
"""

# A writer chooses ``token`` before its commit, so that it can look for the commit after a lost connection.
_POSTGRESQL = """
CREATE TABLE decision (
    id BIGINT PRIMARY KEY, uuid UUID NOT NULL, decided_at_s DOUBLE PRECISION NOT NULL, outcome TEXT NOT NULL,
    project_id TEXT NOT NULL, settings_id BIGINT NOT NULL, hosts TEXT NOT NULL, reason TEXT NOT NULL,
    body BYTEA NOT NULL);
CREATE INDEX decision_uuid ON decision (uuid);
CREATE TABLE feed (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid XID8 NOT NULL DEFAULT pg_current_xact_id(),
    written_at TIMESTAMPTZ NOT NULL DEFAULT now(), token BIGINT NOT NULL, body BYTEA NOT NULL);
CREATE INDEX feed_xid ON feed (xid)
"""


def upgrade() -> None:
    """Create the tables."""
    connection = op.get_bind()
    statements = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    for statement in statements.split(";"):
        connection.exec_driver_sql(statement.strip())
