"""Work: what a conductor needs to know and to tell agents, as rows that are committed with claims and releases.

They are never part of the feed and never in the columns. Each row has a version, by which two who change it notice
each other; a row of ``event`` never changes. Times are seconds since the epoch, uuids are 16 bytes.
"""

from typing import Literal

import msgspec

MigrationKind = Literal["resize", "migrate", "live", "evacuate"]
MigrationStatus = Literal["moving", "finished", "left", "confirmed", "reverting", "reverted", "failed"]

# Work that waits for somebody else is due then: in a time that never comes.
NEVER_S = 9e15


class AgentRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The agent of a host, one a service."""

    host: str  # the name of the service in lower case: two hosts never differ by case only
    name: str  # the same as it was given
    run: bytes  # one life of the agent's process
    cell: str = ""
    driver: str
    software: str = ""  # what it says that it is, with its version
    state: Literal["arriving", "ready", "gone"]
    registered_at_s: float
    heard_at_s: float  # also raised by ``Store.beat``, which leaves the version alone
    fence: int  # rises with each run
    version: int = 1


class StatusRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What an instance is, and what is being done to it. Whether it holds anything is told by its consumer."""

    uuid: bytes
    id: int  # in the order in which they were asked for
    name: str
    project_id: str
    user_id: str
    cell: str = ""
    host: str = ""  # the service; empty: it is on none, so for node
    node: str = ""
    status: str  # BUILD, ACTIVE, SHUTOFF, VERIFY_RESIZE, SHELVED, SHELVED_OFFLOADED, ERROR, DELETED
    task: str = ""  # what somebody works on; empty: nothing
    operation_id: int = 0  # the open one, of which there is one at most; 0: none
    flavor_id: int  # documents, so for image (0: none) and request
    image_id: int = 0
    request_id: int = 0
    decision_uuid: bytes | None = None
    migration_uuid: bytes | None = None
    fault: str = ""
    created_at_s: float
    changed_at_s: float
    version: int = 1


class OperationRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What somebody asked for, and which step of it comes next."""

    id: int
    uuid: bytes
    kind: str
    instance_uuid: bytes | None = None  # None: it is about several
    turn: int = 0  # of the instance; 0: it waits for its turn
    parent_id: int = 0  # the operation that it is a part of; 0: none
    cell: str = ""  # whose conductor works on it; empty: no host was chosen yet
    step: str
    is_undoing: bool = False
    is_cancelled: bool = False
    outcome: Literal["", "done", "failed"] = ""  # empty: it is open
    due_at_s: float  # it is not worked on before
    owner: str = ""
    owned_until_s: float = 0.0  # nobody else works on it before; 0: nobody owns it
    body: bytes = b""
    created_at_s: float
    changed_at_s: float
    version: int = 1


class OrderRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One act that is asked of one agent, and its answer."""

    id: int
    operation_id: int
    number: int  # of the operation's orders; with it an order is known as the same
    host: str  # as in ``AgentRow``
    instance_uuid: bytes | None = None
    turn: int = 0
    action: str
    body: bytes = b""
    state: Literal["waiting", "taken", "answered", "withdrawn"] = "waiting"
    run: bytes | None = None  # who took it
    answer: bytes = b""
    version: int = 1


class MigrationRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A move of an instance from one host to another; its uuid is also the consumer's that holds what was left."""

    uuid: bytes
    id: int
    instance_uuid: bytes
    kind: str  # resize, migrate, live, evacuate
    status: str  # moving, finished, left (confirmed, and its old host is away), confirmed, reverting, reverted, failed
    source_host: str
    source_node: str
    target_host: str = ""  # empty: not chosen yet, so for the node
    target_node: str = ""
    old_flavor_id: int
    new_flavor_id: int
    operation_id: int
    created_at_s: float
    changed_at_s: float
    version: int = 1


class LeaseRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Who may do a periodic job, until when."""

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


WorkRow = AgentRow | StatusRow | OperationRow | OrderRow | MigrationRow | LeaseRow | EventRow


class Put(msgspec.Struct, frozen=True):
    """A row comes to be, takes the place of the one that was read, or is to be as it was read.

    Whatever the row is known by, its id, its uuid, its number, stays what it was.

    Args:
        row: the new one.
        expected: the version of the one that it replaces; its own: it stays, and what rests on it fails if it did not;
            None: there is none yet.
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
        """Whether it writes anything."""
        return self.expected is None or isinstance(self.row, EventRow) or self.row.version > self.expected
