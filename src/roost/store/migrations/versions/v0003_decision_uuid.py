"""A decision is found by its uuid."""

from alembic import op

revision = "0003"
down_revision = "0002"

# The uuids of decisions sort by time, so an index by uuid grows at its end, just as the one by number and uuid
# does that was read from end to end before. A commit writes as many pages with either.
_SQLITE = """
DROP INDEX decision_id_uuid;
CREATE INDEX decision_uuid ON decision (uuid)
"""


def upgrade() -> None:
    """Change the index; PostgreSQL has the right one."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for statement in _SQLITE.split(";"):
            connection.exec_driver_sql(statement.strip())
