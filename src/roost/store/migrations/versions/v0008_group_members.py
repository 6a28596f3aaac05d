"""The members of server groups, so that the deletion of a group finds them without a scan of all instances.

The version also keeps away older processes: they cannot read the deletion of a group in the feed.
"""

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the index."""
    op.get_bind().exec_driver_sql("CREATE INDEX instance_group ON instance (group_id) WHERE group_id <> 0")
