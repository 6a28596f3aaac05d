"""The interfaces between the parts of the product, as protocols.

``work_reader``: committed work.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol

import msgspec

from roost.engine.columns.state import State
from roost.engine.fill.loaded_database import LoadedDatabase as LoadedDatabase  # the result of ``Store.load``
from roost.model.evidence.decision import Limits
from roost.model.evidence.fleet_part import FleetPart
from roost.model.placement.remote import Amounts, RemoteAnswer, RemoteConsumer
from roost.model.request import CandidateQuery
from roost.model.stored_decision import DecisionQuery
from roost.model.work.builds import Instance
from roost.model.work.work_rows import ChangeRow
from roost.model.writes import Change, Claim, EvidenceRow, Item, Refusal, Release, Write
from roost.ports.work_reader import WorkReader as WorkReader  # part of the interface of the store

IdKind = Literal[
    "symbol",
    "provider",
    "aggregate",
    "host",
    "group",
    "document",
    "consumer",
    "decision",
    "status",
    "operation",
    "order",
    "migration",
    "event",
    "change",
]


class DepartedInstance(msgspec.Struct, frozen=True):
    """The release of an instance in the columns, before its claim on another host."""

    release: Release  # the write for the database
    held: Claim  # the claim to restore the allocations


class Clock(Protocol):
    """A source of time."""

    def now_s(self) -> float:
        """Return seconds since the epoch."""

    def elapsed_s(self) -> float:
        """Return the seconds of a monotonic clock, for durations."""


class Random(Protocol):
    """A source of randomness."""

    def seed(self) -> int:
        """Return a new seed, 0..2**62 - 1."""

    def uuids(self, count: int) -> list[bytes]:
        """Return ``count`` new uuids, 16 bytes each, in the order of time."""


class CommitResult(msgspec.Struct, frozen=True):
    """The result of a commit."""

    refusals: list[Refusal | None]  # one per item, in order; None: accepted and durable
    position: int  # of the change with the accepted items
    waited_s: float | None = None  # for rows locked by other processes; None: not measured
    elapsed_s: float = 0.0  # duration, if ``waited_s`` is measured


class Past(msgspec.Struct, frozen=True):
    """The content of a database at the time of a decision, and the change of the decision's own group."""

    writes: Iterator[Write]  # in a valid order of application; read it to its end, once
    own: list[Write]  # of the next change of the same process; empty if there is none
    is_after: bool = False  # whether the writes begin after the given mark, instead of with an empty database


class LiveWriter(NamedTuple):
    """A live process of a database. Its number stays the same until it ends."""

    process: int
    version: str  # of its program; empty: unknown
    schema: str  # the newest schema version that its program knows; empty: it is older than heartbeats
    machine: str  # host name and process id
    started_at_s: float
    age_s: float  # of its last heartbeat
    is_deciding: bool = False  # whether it is alive and has decided a request in the last minutes


class FeedMark(NamedTuple):
    """The changes in some columns."""

    position: int  # of the newest one
    visible: str  # ``Store.visible_changes`` of the process with the columns


class Store(Protocol):
    """The durable store. One thread uses it at a time."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write too."""

    def load(self, *, from_rows: bool = False) -> LoadedDatabase:
        """Read everything as of one moment; ``changes`` continues from there.

        Args:
            from_rows: whether to read all rows, even if a column file is valid.
        """

    def reserve(self, kind: IdKind, count: int) -> int:
        """Return the first of ``count`` identities that no other process gets."""

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """Write items in one transaction, durable on return.

        Each item is accepted or refused as a whole. The store checks the items in order against the current rows:
        capacity and unit bounds of every claimed inventory, places, generations, uniqueness.

        Raises:
            StoreBroken: the database is read-only, full or corrupt; nothing was written.
            StoreBusy: another program has locked the database; nothing was written.
            Unavailable: the server is gone. It is unknown whether the items are durable: load again before the next
                answer.
        """

    def changes(self) -> Sequence[Change] | None:
        """Return the commits of others since the last call or ``load``; None: the database was restored, load it."""

    @property
    def visible_changes(self) -> str:
        """The exact set of changes read or made by this process, as text; empty if the position alone defines it."""

    def order_creations(self) -> AbstractContextManager[None]:
        """Keep other processes from creating providers or hosts within the block.

        The identities of providers and hosts then rise in the order of the feed, so all processes have the same order.
        """

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """Return one stored decision, or the newest ones, newest first."""

    def refusals(self, *, since_s: float, newest: int) -> list[EvidenceRow]:
        """Return up to ``newest`` refused decisions since a moment, newest first."""

    def decisions(self, query: DecisionQuery) -> list[EvidenceRow]:
        """Return the decisions that match a query, highest numbers first."""

    def document(self, number: int) -> bytes | None:
        """Return the body of a stored document, or None if there is none of that number."""

    def beat(self, hosts: Iterable[str], now_s: float) -> None:
        """Record the time of the last contact with agents; it is not part of the feed, and may be lost.

        Args:
            hosts: names as in ``AgentRow``; unknown ones are ignored.
            now_s: the time of contact; a later recorded time stays.
        """

    def check_writable(self, now_s: float) -> None:
        """Write a row that has no other use, durably, to find out whether the database accepts writes.

        Raises:
            Unavailable: it does not.
        """

    @property
    def process(self) -> int:
        """The number of this process in ``live_writers``; 0: no other process can serve the database."""

    def live_writers(self) -> Sequence[LiveWriter]:
        """Return the live processes of the database, with this one, as of the last heartbeat; oldest first.

        Any thread may call this; it reads nothing. It is empty if no other process can serve the database.
        """

    def work_reader(self, clock: Clock) -> WorkReader:
        """Return a reader of work for one thread; any thread may call this.

        Args:
            clock: the source of time if the database has none.

        Raises:
            Unavailable: the database cannot be read.
        """

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """Delete decisions beyond the limits, with the feed and the snapshots that no remaining decision needs.

        Args:
            older_than_s: delete decisions made before this moment, in seconds since the epoch.
            max_bytes: maximum size of decisions, feed and snapshots, >= 0; the oldest are deleted beyond it.

        Returns:
            The number of deleted decisions and changes; bounded per call.
        """

    def prune_work(
        self, *, older_than_s: float, changes_older_than_s: float = -math.inf, changes_max: int | None = None
    ) -> int:
        """Delete ended work: operations with their orders, migrations, deleted instances, events; and old changes.

        Args:
            older_than_s: delete work that ended at this moment or earlier, in seconds since the epoch.
            changes_older_than_s: delete the records of changes of this moment or earlier.
            changes_max: approximate maximum number of records of changes; the oldest are deleted; None: no limit.

        Returns:
            The number of deleted rows; bounded per call.
        """

    def start_snapshot(self, *, every_bytes: int) -> bool:
        """Start writing a snapshot in another process, if one is due; return whether it was started.

        Args:
            every_bytes: approximate size of the feed between two snapshots, >= 1.
        """

    def start_column_file(self) -> bool:
        """Start writing the column file in another process, if it is due; return whether it was started."""

    def past(self, position: int, visible_changes: str, *, after: FeedMark | None = None) -> Past | None:
        """Return the content of the database at the time of a decision; None: it was deleted.

        Args:
            position: position of the newest change at that time.
            visible_changes: ``visible_changes`` of the deciding process at that time.
            after: changes that the caller has already. If possible, return only the others; see ``Past.is_after``.
        """

    def close(self) -> None:
        """Close the database, and release the lock beside it."""


class Ledger(Protocol):
    """The columns, kept equal with the database."""

    @property
    def state(self) -> State:
        """The columns."""

    def refresh(self) -> bool:
        """Apply the commits of other processes; return whether there were any."""

    def new_id(self, kind: IdKind) -> int:
        """Return a new identity, unique across all processes."""


class FleetLedger(Ledger, Protocol):
    """Commits of changes to the fleet, for the fleet service."""

    def reserve_in_order(self, kind: IdKind, count: int) -> AbstractContextManager[int]:
        """Reserve identities above all earlier ones, and yield the first; see ``Store.order_creations``."""

    def write(self, writes: Sequence[Write]) -> None:
        """Commit writes, all or nothing."""

    def stage_write(self, item: Item) -> None:
        """Add writes to the next group commit."""


class Placement(Ledger, Protocol):
    """Claims on the columns, and the commit of these claims, for the scheduler."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write too."""

    @property
    def part(self) -> FleetPart | None:
        """The part of the fleet of this process, as of the last ``refresh``; None: it decides alone."""

    def group_size(self, maximum: int) -> int:
        """Return the present upper bound of items in one commit, 1..maximum."""

    @property
    def staged_count(self) -> int:
        """The number of items in the next commit."""

    @property
    def ahead(self) -> int:
        """The number of claims and releases in the columns that are not committed yet."""

    @property
    def visible_changes(self) -> str:
        """The changes in the columns, as text: see ``Store.visible_changes``."""

    def occupy(self, claim: Claim) -> None:
        """Claim the amounts of one instance in the columns, visible to later picks."""

    def withdraw(self, claims: Sequence[Claim], left: DepartedInstance | None = None) -> None:
        """Undo unstaged claims of ``occupy``, and restore the released instance ``left``."""

    def leave(self, instance: bytes) -> DepartedInstance:
        """Release an instance in the columns, before its claim on another host."""

    def stage(self, item: Item, left: DepartedInstance | None = None) -> int:
        """Add an occupied claim with its evidence to the next commit; return its index there."""

    def release(self, consumer_uuids: Sequence[str], trail: tuple[ChangeRow, ...] = ()) -> int:
        """Release consumers with the next commit; return the number of existing ones."""

    def flush(self) -> list[Refusal | None]:
        """Commit all staged items; return one verdict per item."""

    def drop(self) -> None:
        """Drop all staged items."""


class Commits(Ledger, Protocol):
    """Commits that change the columns at once, for moves between hosts."""

    def commit(self, items: Sequence[Item]) -> list[Refusal | None]:
        """Commit items, then apply them to the columns; return one verdict per item."""


class Builder(Protocol):
    """Builds instances on hosts."""

    def build(self, instance: Instance, *, host: str, node: str, limits: Limits) -> None:
        """Build an instance; on return the instance runs.

        After an error nothing of the instance remains on the host.

        Args:
            instance: the instance, with its allocations on the host.
            host, node: the service and its node.
            limits: upper bounds of the use of the host, including the instance; empty if the host was forced.

        Raises:
            BuildFailed: the build failed here, but may succeed on another host.
            BuildAborted: the build would fail on any host.
        """


class RemotePlacement(Protocol):
    """The Placement of another server."""

    def dry(self) -> "RemotePlacement":
        """Return a copy for dry runs; it writes nothing."""

    def candidates(self, query: CandidateQuery) -> RemoteAnswer:
        """Return the hosts for a query.

        Raises:
            PlacementGone: the remote Placement does not answer. Every method below raises it, too.
        """

    def claim(self, consumer_uuid: str, allocations: Amounts, *, project_id: str, user_id: str) -> bool:
        """Claim amounts for a new consumer; return whether it succeeded.

        Raises:
            Conflict: the consumer has allocations already.
        """

    def allocations_of(self, consumer_uuid: str) -> RemoteConsumer:
        """Return the allocations of a consumer."""

    def replace(
        self,
        consumer_uuid: str,
        allocations: Amounts,
        *,
        project_id: str,
        user_id: str,
        known: RemoteConsumer | None = None,
    ) -> bool:
        """Replace all allocations of a consumer, all or nothing; return whether it succeeded.

        Args:
            known: its present allocations; None: read them.
        """

    def release(self, consumer_uuid: str) -> None:
        """Release all allocations of a consumer, if it has any."""

    def aggregates_of(self, provider_uuid: str) -> frozenset[str] | None:
        """Return the aggregates of a provider; None: it does not exist."""


class Documents(Protocol):
    """The storage of flavors, images, requests and settings, each stored once; implemented by the fleet service."""

    def document(self, kind: str, body: bytes) -> int:
        """Return the number of a document; a new one is stored with the next commit."""
