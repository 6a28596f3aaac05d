"""Programs with schema 0010 may not serve the database any more."""

from alembic import op

revision = "0012"
down_revision = "0011"
phase = "contract"

# Programs with schema 0010 read this table only, and want exactly their own version.
_POSTGRESQL = """
CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
DELETE FROM alembic_version;
INSERT INTO alembic_version (version_num) VALUES ('0012')
"""


def upgrade() -> None:
    """Raise the version of the oldest program."""
    op.execute("UPDATE compatibility SET readable_from = '0012'")
    if op.get_bind().dialect.name == "postgresql":
        for statement in _POSTGRESQL.split(";"):
            op.get_bind().exec_driver_sql(statement.strip())
