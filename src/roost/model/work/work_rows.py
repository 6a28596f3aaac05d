"""Work: the rows of conductors, committed with claims and releases.

They are never part of the feed or the columns. The version of each row detects concurrent writers; rows of ``event``
and ``change_record`` never change. Times are seconds since the epoch, uuids are 16 bytes.
"""

from typing import Literal

import msgspec

MigrationKind = Literal["resize", "migrate", "live", "evacuate"]
MigrationStatus = Literal["moving", "finished", "left", "confirmed", "reverting", "reverted", "failed"]

# Due time of work that waits for an event, without a deadline: a time in the far future.
NEVER_S = 9e15
# The run of an agent that has not registered since the database was restored.
NO_RUN = bytes(16)
# The name of the lease that records the last restore: its end is the time of the restore.
RESTORE_LEASE = "restore"


class AgentRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The agent of a host, one per service."""

    host: str  # name of the service in lower case; names never differ only in case
    name: str  # name in its original case
    run: bytes  # uuid of the run of the agent's process, or ``NO_RUN``
    cell: str = ""
    driver: str
    software: str = ""  # reported software and version
    state: Literal["arriving", "ready", "gone"]
    registered_at_s: float
    heard_at_s: float  # ``Store.beat`` raises it, too, without a new version
    fence: int  # rises with each run
    version: int = 1


class StatusRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The status and task of an instance. Its consumer has its allocations."""

    uuid: bytes
    id: int  # in order of the requests
    name: str
    project_id: str
    user_id: str
    cell: str = ""
    host: str = ""  # the service; empty: no host, like node
    node: str = ""
    status: str  # BUILD, ACTIVE, SHUTOFF, VERIFY_RESIZE, SHELVED, SHELVED_OFFLOADED, ERROR, DELETED
    task: str = ""  # task in progress; empty: none
    operation_id: int = 0  # the open operation, at most one; 0: none
    flavor_id: int  # document, like image_id (0: none) and request_id
    image_id: int = 0
    request_id: int = 0
    decision_uuid: bytes | None = None
    migration_uuid: bytes | None = None
    fault: str = ""
    created_at_s: float
    changed_at_s: float
    version: int = 1


class OperationRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An operation and its next step."""

    id: int
    uuid: bytes
    kind: str
    instance_uuid: bytes | None = None  # None: several instances
    turn: int = 0  # rises with each operation of the instance; 0: queued
    parent_id: int = 0  # parent operation; 0: none
    cell: str = ""  # cell of the responsible conductor; empty: no host chosen yet
    step: str
    is_undoing: bool = False
    is_cancelled: bool = False
    outcome: Literal["", "done", "failed"] = ""  # empty: open
    due_at_s: float  # earliest time of the next step
    owner: str = ""
    owned_until_s: float = 0.0  # end of the exclusive ownership; 0: no owner
    body: bytes = b""
    created_at_s: float
    changed_at_s: float
    version: int = 1
    user_id: str = ""  # the client that requested it, like project_id and request_id; empty: a conductor
    project_id: str = ""
    request_id: str = ""


class OrderRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One action for one agent, and its reply."""

    id: int
    operation_id: int
    number: int  # within the operation; identifies the order
    host: str  # as in ``AgentRow``
    instance_uuid: bytes | None = None
    turn: int = 0
    action: str
    body: bytes = b""
    state: Literal["waiting", "taken", "answered", "withdrawn"] = "waiting"
    run: bytes | None = None  # run of the agent that took it
    answer: bytes = b""
    version: int = 1


class MigrationRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A move of an instance between hosts; a consumer with its uuid holds resources on one of them."""

    uuid: bytes
    id: int
    instance_uuid: bytes
    kind: str  # resize, migrate, live, evacuate
    status: str  # moving, finished, left (confirmed while the old host is away), confirmed, reverting, reverted, failed
    source_host: str
    source_node: str
    target_host: str = ""  # empty: not chosen yet, like the node
    target_node: str = ""
    old_flavor_id: int
    new_flavor_id: int
    operation_id: int
    created_at_s: float
    changed_at_s: float
    version: int = 1


class LeaseRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The lease of a periodic job."""

    name: str
    owner: str
    until_s: float
    version: int = 1


class EventRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One line of the story of an instance or an operation."""

    id: int
    at_s: float
    instance_uuid: bytes | None = None
    operation_id: int = 0
    kind: str
    body: bytes = b""


class ChangeRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A change by a client, committed with its writes. It is never changed, and no verdict depends on it."""

    id: int
    at_s: float
    kind: str  # noun and verb, such as ``host.disable``
    object: str = ""  # name or uuid; empty: none
    user_id: str = ""  # empty: the server itself
    project_id: str = ""
    roles: str = ""  # separated by commas
    request_id: str = ""
    body: bytes = b""  # JSON: details by name


WorkRow = AgentRow | StatusRow | OperationRow | OrderRow | MigrationRow | LeaseRow | EventRow


class Put(msgspec.Struct, frozen=True):
    """Insert a row, replace the version that was read, or require it unchanged.

    The keys of a row (id, uuid, number) never change.

    Args:
        row: the new row.
        expected: version of the replaced row; equal to the row's own: require it unchanged; None: insert.
    """

    row: WorkRow
    expected: int | None = None

    def __post_init__(self) -> None:
        if self.expected is None:
            return
        assert not isinstance(self.row, EventRow), "an event never changes"
        assert self.row.version >= self.expected, "versions never fall"

    @property
    def is_change(self) -> bool:
        """Whether the put writes a row."""
        return self.expected is None or isinstance(self.row, EventRow) or self.row.version > self.expected
