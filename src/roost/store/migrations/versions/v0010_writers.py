"""Writers: each process numbers its changes, so other processes find the new ones on any server.

Only PostgreSQL has several processes; a SQLite file stays as it is.
"""

from alembic import op

revision = "0010"
down_revision = "0009"

# Earlier changes belong to writer 0 and keep their transaction, for the replay of decisions of that time. The id of a
# writer comes from the row ``writer`` of ``sequence``, which a registration locks: so ids become visible in order.
_POSTGRESQL = """
CREATE TABLE writer (
    id BIGINT PRIMARY KEY, previous BIGINT NOT NULL, process BIGINT NOT NULL, version TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL DEFAULT now(), retired BIGINT);
INSERT INTO sequence (kind, next) VALUES ('writer', 0);
ALTER TABLE feed ADD COLUMN writer BIGINT NOT NULL DEFAULT 0, ADD COLUMN seq BIGINT NOT NULL DEFAULT 0,
    ALTER COLUMN token DROP NOT NULL;
CREATE UNIQUE INDEX feed_writer ON feed (writer, seq) WHERE writer <> 0;
UPDATE snapshot SET seen = 'w0 ' WHERE position = 0 AND NOT EXISTS (SELECT 1 FROM feed)
"""


def upgrade() -> None:
    """Create the table, and add the columns."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        for statement in _POSTGRESQL.split(";"):
            connection.exec_driver_sql(statement.strip())
