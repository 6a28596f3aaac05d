"""The seams: what each part needs of its neighbours, as protocols and nothing else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

import msgspec

from roost.engine.columns.state import State
from roost.model.evidence.decision import Limits
from roost.model.placement.remote import Amounts, RemoteAnswer
from roost.model.request import CandidateQuery
from roost.model.stored_decision import DecisionQuery
from roost.model.work.builds import Instance
from roost.model.work.work_rows import AgentRow, EventRow, LeaseRow, MigrationRow, OperationRow, OrderRow, StatusRow
from roost.model.writes import Change, Claim, EvidenceRow, Item, Refusal, Release, Write

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
]


class Left(msgspec.Struct, frozen=True):
    """An instance that left its host in the columns."""

    release: Release  # which lets it leave there in the database, too
    held: Claim  # by which it comes back to what it held


class Clock(Protocol):
    """Time as an argument."""

    def now_s(self) -> float:
        """Return seconds since the epoch."""

    def elapsed_s(self) -> float:
        """Return seconds of a clock that never goes back, for durations."""


class Random(Protocol):
    """Randomness as an argument."""

    def seed(self) -> int:
        """Return a fresh seed, 0..2**62 - 1."""

    def uuids(self, count: int) -> list[bytes]:
        """Return ``count`` fresh uuids, 16 bytes each, that sort by the time they were made."""


class Loaded(msgspec.Struct, frozen=True):
    """A whole database at one moment."""

    position: int  # of the newest change it holds
    writes: Iterator[Write]  # in an order in which they can be applied; read it to its end, once


class Committed(msgspec.Struct, frozen=True):
    """What became of a group of items."""

    refusals: list[Refusal | None]  # one an item, in order; None: accepted and durable
    position: int  # of the change that holds the accepted ones


class Past(msgspec.Struct, frozen=True):
    """A whole database as a decision saw it, and the change that the decision's own group became."""

    writes: Iterator[Write]  # in an order in which they can be applied; read it to its end, once
    own: list[Write]  # of the next change that the same process made; none where it made no other


class Store(Protocol):
    """The durable truth. One thread uses it at a time."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write too."""

    def load(self) -> Loaded:
        """Read everything, as of one moment, and remember that moment for ``changes``."""

    def reserve(self, kind: IdKind, count: int) -> int:
        """Return the first of ``count`` identities that nobody else will ever get."""

    def commit(self, items: Sequence[Item]) -> Committed:
        """Write items in one transaction, durable on return.

        Each item is taken whole or refused whole, judged in order against the rows as they are now:
        capacity and unit bounds of every inventory it takes from, places, generations, uniqueness.
        An error leaves nothing behind.

        Raises:
            StoreBroken: the database is read-only, full or corrupt.
            StoreBusy: another program has locked it.
            Unavailable: the server is gone. Whether the items are in is not known: load again before the next
                answer.
        """

    def changes(self) -> Sequence[Change] | None:
        """Return what was committed since the last call (or ``load``), this process's own left out.

        ``load`` comes before the first call. None: the database was restored, and ``load`` must come again.
        """

    @property
    def seen(self) -> str:
        """What names exactly the changes that this process has read or made; empty: their position does."""

    def order_creations(self) -> AbstractContextManager[None]:
        """Let nobody else create providers or hosts meanwhile.

        So their identities rise in the order of the feed, and every process has them in the same order.
        """

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """Return one stored decision, or the newest ones, newest first."""

    def refusals(self, *, since_s: float, newest: int) -> list[EvidenceRow]:
        """Return refused decisions made at a moment or later, newest first, so many at most."""

    def decisions(self, query: DecisionQuery) -> list[EvidenceRow]:
        """Return the decisions that a query wants, those of the highest numbers first."""

    def document(self, number: int) -> bytes | None:
        """Return the body of a stored document, or None where there is none of that number."""

    def beat(self, hosts: Iterable[str], now_s: float) -> None:
        """Note that agents were heard: a hint that is no commit and no change, and may be lost.

        Args:
            hosts: as in ``AgentRow``; those unknown are passed over.
            now_s: when; what was noted of a later moment stays.
        """

    def work_reader(self, clock: Clock) -> "WorkReader":
        """Return what reads work beside this store; from any thread, and good for any one thread.

        Args:
            clock: tells the time where the database has none of its own.

        Raises:
            Unavailable: the database cannot be read.
        """

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """Delete decisions, and feed and snapshots that no other decision needs, beyond the bounds.

        Args:
            older_than_s: a moment, in seconds since the epoch; decisions that were made before it go.
            max_bytes: of decisions, feed and snapshots together, >= 0; the oldest go until no more is left.

        Returns:
            How many decisions and changes went; a call deletes a bounded number.
        """

    def prune_work(self, *, older_than_s: float) -> int:
        """Delete work that is over: operations with their orders, migrations, deleted instances, and events.

        Args:
            older_than_s: a moment, in seconds since the epoch; what is over since then or longer goes.

        Returns:
            How many rows went; a call deletes a bounded number.
        """

    def start_snapshot(self, *, every_bytes: int) -> bool:
        """Begin to write a snapshot beside this process, where one is due; say whether.

        Args:
            every_bytes: of feed, about, from one snapshot to the next, >= 1.
        """

    def past(self, position: int, seen: str) -> Past | None:
        """Return everything as it was when a decision was made; None: it is no longer kept.

        Args:
            position: of the newest change then.
            seen: as the store of the deciding process gave it then.
        """

    def close(self) -> None:
        """Let go of the database, and of the lock beside it."""


class WorkReader(Protocol):
    """What is known of work, as last committed; one thread uses it at a time.

    What it says may be out of date at once: a commit that rests on it names the versions it read, and is refused
    if they are others by then. Lists are in the order of their ids, ascending, unless something else is said.
    """

    def now_s(self) -> float:
        """Return the time that all who share the database agree on, in seconds since the epoch.

        Raises:
            Unavailable: the database cannot be read; so for all of these.
        """

    def due_operations(self, cells: Sequence[str] | None, *, now_s: float, most: int) -> list[OperationRow]:
        """Return open operations of some cells that are due and that nobody owns, those that were due first first.

        Args:
            cells: None: all of them, for which all open operations are looked at.
        """

    def operation(self, number: int) -> OperationRow | None:
        """Return an operation by its id."""

    def operation_of(self, uuid: bytes) -> OperationRow | None:
        """Return an operation by its uuid."""

    def operations(self, *, after_id: int = 0, most: int, is_open: bool = False) -> list[OperationRow]:
        """Return a page of all operations, or of the open ones."""

    def operations_on(self, instance_uuid: bytes, *, newest: int) -> list[OperationRow]:
        """Return the last operations of an instance, newest first."""

    def operations_by(self, numbers: Sequence[int]) -> list[OperationRow]:
        """Return operations by their ids; those unknown are left out."""

    def open_operations_on(self, instance_uuids: Sequence[bytes]) -> list[OperationRow]:
        """Return the open operations of some instances."""

    def parts_of(self, operation_id: int) -> list[OperationRow]:
        """Return the operations that an operation consists of."""

    def open_parts_of(self, operation_id: int, *, most: int) -> list[OperationRow]:
        """Return some of those that are still open."""

    def status(self, uuid: bytes) -> StatusRow | None:
        """Return the status of an instance."""

    def statuses_of(self, uuids: Sequence[bytes]) -> list[StatusRow]:
        """Return the statuses of instances; those unknown are left out."""

    def statuses(
        self,
        *,
        after_id: int = 0,
        most: int,
        project_id: str | None = None,
        host: str | None = None,
        status: str | None = None,
    ) -> list[StatusRow]:
        """Return a page of statuses, all or those with what is given."""

    def open_orders(self, hosts: Sequence[str], *, most: int, actions: Sequence[str] | None = None) -> list[OrderRow]:
        """Return orders to the agents of hosts that wait, or were taken and not answered: all, or of some actions."""

    def order(self, number: int) -> OrderRow | None:
        """Return an order by its id."""

    def orders_named(self, numbers: Sequence[int]) -> list[OrderRow]:
        """Return orders by their ids; those unknown are left out."""

    def orders_of(self, operation_id: int) -> list[OrderRow]:
        """Return the orders of an operation, in the order of their numbers."""

    def orders_of_all(self, operation_ids: Sequence[int]) -> list[OrderRow]:
        """Return the orders of some operations, in the order of their numbers."""

    def migration(self, uuid: bytes) -> MigrationRow | None:
        """Return a migration."""

    def migrations_of(self, instance_uuid: bytes) -> list[MigrationRow]:
        """Return the migrations of an instance, oldest first."""

    def migrations_of_all(self, instance_uuids: Sequence[bytes]) -> list[MigrationRow]:
        """Return the migrations of some instances."""

    def migrations(
        self,
        *,
        after_id: int = 0,
        most: int,
        status: str | None = None,
        source_host: str | None = None,
        target_host: str | None = None,
    ) -> list[MigrationRow]:
        """Return a page of migrations, all or those with what is given."""

    def events_on(self, instance_uuid: bytes, *, newest: int) -> list[EventRow]:
        """Return the last events of an instance, newest first."""

    def events_of(self, operation_id: int, *, newest: int) -> list[EventRow]:
        """Return the last events of an operation, newest first."""

    def events_since(self, at_s: float, *, most: int) -> list[EventRow]:
        """Return events of a moment and later, in the order of their moments."""

    def agents(self) -> list[AgentRow]:
        """Return all agents, in the order of their hosts."""

    def agents_in_charge(self) -> Mapping[str, AgentRow]:
        """Return all agents by host, each as it was written last; when it was heard may be told too early."""

    def agent(self, host: str) -> AgentRow | None:
        """Return the agent of a host."""

    def lease(self, name: str) -> LeaseRow | None:
        """Return a lease."""

    def close(self) -> None:
        """Let go of the database."""


class Journal(Protocol):
    """What the fleet's service needs: the columns, and commits that change them."""

    @property
    def state(self) -> State:
        """The columns."""

    def new_id(self, kind: IdKind) -> int:
        """Return an identity that nobody else will ever get."""

    def creating(self, kind: IdKind, count: int) -> AbstractContextManager[int]:
        """Give the first of fresh identities, higher than all before; nobody else creates meanwhile."""

    def write(self, writes: Sequence[Write]) -> None:
        """Commit writes, all or nothing."""

    def stage_write(self, item: Item) -> None:
        """Commit writes with the next group."""


class Placement(Protocol):
    """What selecting needs: the columns, claims on them, and the commit that makes claims durable."""

    @property
    def state(self) -> State:
        """The columns."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write too."""

    @property
    def staged_count(self) -> int:
        """How many items wait for the next commit."""

    @property
    def ahead(self) -> int:
        """How many claims and releases are in the columns, and wait for the next commit."""

    @property
    def seen(self) -> str:
        """What names the changes that are in the columns: see ``Store.seen``."""

    def refresh(self) -> bool:
        """Apply what others committed, before an answer; say whether there was anything."""

    def new_id(self, kind: IdKind) -> int:
        """Return a fresh identity."""

    def occupy(self, claim: Claim) -> None:
        """Let one instance take its amounts in the columns, for the picks after it to see."""

    def withdraw(self, claims: Sequence[Claim], left: Left | None = None) -> None:
        """Take back what was occupied and not staged, and let who left be back."""

    def leave(self, instance: bytes) -> Left:
        """Let an instance leave its host in the columns, to occupy another."""

    def stage(self, item: Item, left: Left | None = None) -> int:
        """Add a claim that occupies already, with its evidence, to the next commit; return its place there."""

    def release(self, consumer_uuids: Sequence[str]) -> int:
        """Let consumers end with the next commit."""

    def flush(self) -> list[Refusal | None]:
        """Make all that is staged durable; one verdict an item."""

    def drop(self) -> None:
        """Forget what is staged."""


class Commits(Protocol):
    """What moving an instance from host to host needs: the columns, and commits that change them at once."""

    @property
    def state(self) -> State:
        """The columns."""

    def refresh(self) -> bool:
        """Apply what others committed; say whether there was anything."""

    def new_id(self, kind: IdKind) -> int:
        """Return an identity that nobody else will ever get."""

    def commit(self, items: Sequence[Item]) -> list[Refusal | None]:
        """Make items durable, then visible; return one verdict an item."""


class Builder(Protocol):
    """Builds instances on hosts."""

    def build(self, instance: Instance, *, host: str, node: str, limits: Limits) -> None:
        """Build an instance; when this returns, it runs.

        Args:
            instance: what is built, and what it holds on the host.
            host, node: the service and its node.
            limits: what the host may have in use with it; empty where it was forced.

        Raises:
            BuildFailed: another host may do; nothing of it is left on this one, so for all of these.
            BuildAborted: no other host would do.
        """


class RemotePlacement(Protocol):
    """A Placement of another server: what is free there, and claims there."""

    def dry(self) -> "RemotePlacement":
        """Return the same for dry runs: it asks, and writes nothing."""

    def candidates(self, query: CandidateQuery) -> RemoteAnswer:
        """Ask which hosts could hold a query.

        Raises:
            PlacementGone: it does not answer; so for all of these.
        """

    def claim(self, consumer_uuid: str, allocations: Amounts, *, project_id: str, user_id: str) -> bool:
        """Let a new consumer take amounts; say whether it did, or somebody was faster."""

    def replace(self, consumer_uuid: str, allocations: Amounts, *, project_id: str, user_id: str) -> bool:
        """Let a consumer take amounts in place of all that it holds, both or neither; say whether it did."""

    def release(self, consumer_uuid: str) -> None:
        """Let a consumer give back all it holds, if it holds anything."""


class Documents(Protocol):
    """Where flavors, images, requests and settings are stored once: the fleet's service."""

    def document(self, kind: str, body: bytes) -> int:
        """Return the number of a document."""
