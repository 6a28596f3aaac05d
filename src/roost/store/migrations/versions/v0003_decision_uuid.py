"""An index of decisions by uuid."""

from alembic import op

revision = "0003"
down_revision = "0002"

# The uuids of decisions sort by time, so an index by uuid grows at its end, like the previous index by number and
# uuid. So a commit writes the same number of pages, but a search no longer reads the whole index.
_SQLITE = """
DROP INDEX decision_id_uuid;
CREATE INDEX decision_uuid ON decision (uuid)
"""


def upgrade() -> None:
    """Replace the index of SQLite; PostgreSQL already has an index by uuid."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for statement in _SQLITE.split(";"):
            connection.exec_driver_sql(statement.strip())
