"""The columns in memory and the store behind them, kept equal."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import msgspec

from roost.engine.columns.apply import apply, occupy, raise_generations, recount_hosts, undo_claim
from roost.engine.columns.state import State
from roost.engine.fill.state_fill import fill
from roost.errors import BadRequest, StoreBroken, Unavailable
from roost.model.evidence.fleet_part import FleetPart, choose_part
from roost.model.work.operation import IO_TASKS
from roost.model.work.work_rows import ChangeRow, StatusRow
from roost.model.writes import (
    CLASS_BITS,
    Change,
    Claim,
    Item,
    PutDocument,
    PutSymbol,
    PutTask,
    Refusal,
    Release,
    ReuseSymbol,
    Write,
)
from roost.observe import log
from roost.placement.group_limit import GroupLimit
from roost.ports import Clock, DepartedInstance, IdKind, LiveWriter, LoadedDatabase, Store

# Number of identities fetched from the store at once.
_BLOCK = 4096
# Rows of deleted providers are kept up to this number, or up to the number of live rows if that is higher. A reload
# takes time; dead rows take memory and slow each search.
_DEAD_ROWS_MIN = 10_000
# All symbols share one table, so the numbers of each kind have their own range. Custom classes begin at 10,000, which
# leaves numbers for new standard classes. They end before the traits: an inventory id has ``CLASS_BITS`` for the class.
FIRST_NUMBERS = {"resource_class": 10_000, "trait": 1 << CLASS_BITS, "consumer_type": 1 << 32}
# The kinds of identities in a decision.
_DECIDING: tuple[IdKind, ...] = ("consumer", "decision", "document")
# Seconds between the deletion of a class and the reuse of its number. Earlier, the feed may still name the old class,
# and a slow process may not know of the deletion yet.
REUSE_AFTER_S = 7 * 86_400


class Current:
    """The columns of the database in this process, with methods to change columns and database together.

    Claims and releases are staged: they apply to the columns at once, so that the next decision sees them, and
    ``flush`` makes them durable as one group. Acknowledge a staged item only after ``flush``. All other writes are
    committed first and applied afterwards.
    """

    def __init__(self, store: Store, *, state: State | None = None, clock: Clock | None = None) -> None:
        """Start with the contents of the store, or with a state that equals them.

        Args:
            store: the database.
            state: the initial columns; None: load them from the store.
            clock: sets the time of the columns before each change; None: their time is not set.
        """
        self.store = store
        self._clock = clock
        self.state = State() if state is None else state
        self._staged: list[Item] = []
        self._left: dict[int, DepartedInstance] = {}  # by index of the staged item
        self.ahead = 0  # claims and releases in the columns that are not durable yet
        self._ids: dict[IdKind, tuple[int, int]] = {}
        self._numbered: dict[str, int] = {}  # kind of symbol -> the last assigned number
        self._reused: set[int] = set()  # reassigned numbers of dropped classes
        self._is_stale = state is None
        self.caches: dict[type, Any] = {}  # caches of responses, by their class; a reload drops them
        self.part: FleetPart | None = None  # of this process; None: it decides alone
        self._writers: Sequence[LiveWriter] = ()
        self.group_limit = GroupLimit()
        self.refresh()

    def fork(self, store_of: Callable[[int, Mapping[IdKind, int]], Store], *, state: State | None = None) -> "Current":
        """Return an independent copy over another store, with the same next identities.

        Args:
            store_of: creates that store from the position and the first unreserved identity of each kind.
            state: the state to copy; None: the current columns.
        """
        for kind in _DECIDING:
            if kind not in self._ids:
                first = self.store.reserve(kind, _BLOCK)
                self._ids[kind] = (first, first + _BLOCK)
        store = store_of(self.state.position, {kind: end for kind, (_, end) in self._ids.items()})
        copy = Current(store, state=(state or self.state).fork(), clock=self._clock)
        copy._ids = dict(self._ids)
        copy.part = self.part
        return copy

    @property
    def is_alone_and_fresh(self) -> bool:
        """Whether the columns are current without a query to the database."""
        return not self._is_stale and not self.store.is_shared

    def refresh(self) -> bool:
        """Apply the commits of other processes; after a failed commit, reload everything.

        Returns:
            Whether there were, or may have been, changes.
        """
        assert not self._staged, "staged items must be flushed first"
        self._find_part()
        if self._is_stale:
            self._reload()
            return True
        self._date(self.state)
        changes = self.store.changes()
        if changes is None:
            self._reload()
            return True
        if not changes:
            return False
        # An interrupt must not leave half of the changes applied as if they were complete.
        self._is_stale = True
        counts = len(self.state.providers), len(self.state.hosts)
        self._apply(changes)
        self._keep_order(counts)
        return True

    def _find_part(self) -> None:
        """Update the part of the fleet if a process joined or left. Forks and past states keep theirs."""
        writers = self.store.live_writers()
        if writers and writers is not self._writers:
            self._writers = writers
            deciding = frozenset(writer.process for writer in writers if writer.is_deciding)
            self.part = choose_part(self.store.process, deciding)

    def shed(self) -> None:
        """Drop the rows of deleted providers, by a reload, if they outnumber the live ones."""
        rows, living = len(self.state.providers), len(self.state.providers.row_of_uuid)
        if rows - living > max(living, _DEAD_ROWS_MIN):
            assert not self._staged, "staged items must be flushed first"
            self._reload()

    def _date(self, state: State) -> None:
        """Set the time of a state."""
        if self._clock is not None:
            state.now_s = self._clock.now_s()

    def _apply(self, changes: Iterable[Change]) -> None:
        self._date(self.state)
        for change in changes:
            for write in change.writes:
                apply(self.state, write)
            self.state.position = max(self.state.position, change.position)
        recount_hosts(self.state)

    def _keep_order(self, counts: tuple[int, int]) -> None:
        """Reload everything if new rows are out of the order of a load.

        The order of their rows breaks ties between equal hosts, so this order must be the same in every process and
        after a restart. ``reserve_in_order`` guarantees the order; this check is for databases written without it.

        Args:
            counts: numbers of providers and hosts before.
        """
        rows = self.state.providers.ids[max(counts[0] - 1, 0) :], self.state.hosts.ids[max(counts[1] - 1, 0) :]
        self._is_stale = False
        if not all(map(is_rising, rows)):
            self._is_stale = True
            self._reload()

    @contextmanager
    def reserve_in_order(self, kind: IdKind, count: int) -> Iterator[int]:
        """Reserve identities for new providers or hosts, higher than all before; yield the first.

        Within the context, no other process creates providers or hosts, and all earlier ones are in the columns.
        """
        with self.store.order_creations():
            self.refresh()
            yield self.store.reserve(kind, count)

    def _reload(self) -> None:
        state = self._load()
        if self.state.consumer_index is not None:
            state.consumers()  # Build this index now: the next request for consumers may have little time.
        self.state = state
        # After a failover the database may assign the same identities to other processes.
        self._ids.clear()
        self._numbered.clear()
        self._reused.clear()
        self.caches.clear()
        self._is_stale = False

    def _load(self) -> State:
        """Return the content of the store; read all rows if a column file leads to an error, or to another order."""
        loaded = self.store.load()
        if loaded.is_cached:
            try:
                state = self._fill(loaded)
                if is_rising(state.providers.ids) and is_rising(state.hosts.ids):
                    return state
                problem = "later changes created providers or hosts in another order"
            except Exception as error:  # noqa: BLE001  # a file of any content must not prevent a start
                problem = repr(error)
            log.event("column_file_refused", reason=problem)
            loaded = self.store.load(from_rows=True)
        try:
            return self._fill(loaded)
        except (msgspec.MsgspecError, ValueError) as error:
            raise StoreBroken(f"the database is corrupt: a row cannot be understood: {error}") from error
        except KeyError as error:
            raise StoreBroken(f"the database is corrupt: a row names number {error}, which is not there") from error

    def _fill(self, loaded: LoadedDatabase) -> State:
        """Return a new state with the content of a store."""
        state = State()
        self._date(state)
        with pause_collection():
            fill(state, loaded.parts)
            for write in loaded.later:
                apply(state, write)
            recount_hosts(state)
        state.position = loaded.position
        return state

    def new_id(self, kind: IdKind) -> int:
        """Return an identity that no other process gets."""
        following, end = self._ids.get(kind, (0, 0))
        if following == end:
            following = self.store.reserve(kind, _BLOCK)
            end = following + _BLOCK
        self._ids[kind] = (following + 1, end)
        return following

    def new_symbol(self, kind: str, name: str) -> PutSymbol | ReuseSymbol:
        """Return the write that numbers a name; another process may number it at the same time.

        Args:
            kind: resource_class, trait or consumer_type.
            name: a name without a number.

        Raises:
            BadRequest: the numbers of custom classes are exhausted.
        """
        number = max(self.state.name_table(kind).highest, self._numbered.get(kind, 0), FIRST_NUMBERS[kind]) + 1
        if kind == "resource_class" and number >= FIRST_NUMBERS["trait"]:
            return self._reuse_class_number(name)
        self._numbered[kind] = number
        return PutSymbol(kind, number, name)

    def _reuse_class_number(self, name: str) -> ReuseSymbol:
        """Return the write that reuses the number of a class deleted long ago, since all other numbers are used."""
        before_s = self.state.now_s - REUSE_AFTER_S
        for number, at_s in self.state.class_ids.dropped.items():
            if at_s <= before_s and number not in self._reused:
                self._reused.add(number)
                return ReuseSymbol("resource_class", number, name, at_s)
        # Most numbers of this process were probably never committed: later calls may assign them again.
        self._reused.clear()
        self._numbered.clear()
        room = FIRST_NUMBERS["trait"] - FIRST_NUMBERS["resource_class"] - 1
        raise BadRequest(
            f"{room:,} custom resource classes were created already; the number of a deleted one is free again after "
            f"{REUSE_AFTER_S // 86_400} days"
        )

    def stage(self, item: Item, left: DepartedInstance | None = None) -> int:
        """Add applied claims and their evidence to the next commit.

        Args:
            left: the release in the columns that precedes the item's claim; undone if the item is refused.

        Returns:
            The item's index in the result of ``flush``.
        """
        for write in item.writes:
            assert isinstance(write, Claim) or (left is not None and write is left.release), write
            raise_generations(self.state, write)
        if left is not None:
            self._left[len(self._staged)] = left
        assert not any(isinstance(put.row, StatusRow) for put in item.work), "the status of an instance is not staged"
        self._staged.append(item)
        self.ahead += len(item.writes)
        return len(self._staged) - 1

    @property
    def staged_count(self) -> int:
        """Number of items for the next commit."""
        return len(self._staged)

    def stage_write(self, item: Item) -> None:
        """Add documents to the next commit; they are in the columns at once."""
        for write in item.writes:
            assert isinstance(write, PutDocument), write
            apply(self.state, write)
        self._staged.append(item)

    def stage_release(self, freed: Release, trail: tuple[ChangeRow, ...] = ()) -> None:
        """Release consumers in the columns now, and in the store with the next commit."""
        apply(self.state, freed)
        self._staged.append(Item(writes=(freed,), trail=trail))
        self.ahead += 1

    def flush(self) -> list[Refusal | None]:
        """Make the staged items durable; return one verdict per item, in order.

        Refused claims are undone in the columns. A refused release was already carried out by another process.

        Raises:
            Unavailable: no item is known to be durable, and the columns will be reloaded.
        """
        staged, self._staged = self._staged, []
        left, self._left = self._left, {}
        self.ahead = 0
        if not staged:
            return []
        try:
            committed = self.store.commit(staged)
        except Exception:
            self._is_stale = True
            raise
        self.group_limit.note(waited_s=committed.waited_s, elapsed_s=committed.elapsed_s)
        self.state.position = max(self.state.position, committed.position)
        for at, (item, refusal) in enumerate(zip(staged, committed.refusals, strict=True)):
            if refusal is not None:
                for write in item.writes:
                    if isinstance(write, Claim):
                        undo_claim(self.state, write)
                    elif isinstance(write, Release):
                        raise_generations(self.state, write, by=-1)
                if at in left:
                    occupy(self.state, left[at].held)
        return committed.refusals

    def drop(self) -> None:
        """Discard the staged items after an error; the columns will be reloaded."""
        self._staged = []
        self._left = {}
        self.ahead = 0
        self._is_stale = True

    def commit(self, items: Iterable[Item]) -> list[Refusal | None]:
        """Make items durable, then visible; return one verdict per item."""
        assert not self._staged, "staged items must be flushed first"
        if self._is_stale:
            self._reload()
        batch = self._with_tasks(items)
        counts = len(self.state.providers), len(self.state.hosts)
        # Stale until all changes are applied: after an error or an interrupt, the columns must be reloaded.
        self._is_stale = True
        committed = self.store.commit(batch)
        self.group_limit.note(waited_s=committed.waited_s, elapsed_s=committed.elapsed_s)
        verdicts = zip(batch, committed.refusals, strict=True)
        writes = [write for item, refusal in verdicts if refusal is None for write in item.writes]
        changes = [Change(committed.position, writes)]
        if not all(isinstance(write, Claim | Release) for item in batch for write in item.writes):
            # Other processes may have changed the same rows just before; the feed defines the order of the changes.
            others = self.store.changes()
            if others is None:
                self._reload()
                return committed.refusals
            changes = sorted([*others, *changes], key=lambda change: change.position)
        self._apply(changes)
        self._keep_order(counts)
        return committed.refusals

    def _with_tasks(self, items: Iterable[Item]) -> list[Item]:
        """Return items with writes for the start and the end of each I/O task of an instance.

        The status rows in an item's work define these writes. If other processes use the database, each changed status
        row adds a write, because the columns may be older than the row.
        """
        known: dict[bytes, bool] = {}
        extended = []
        for item in items:
            writes = []
            for put in item.work:
                row = put.row
                if isinstance(row, StatusRow) and put.is_change:
                    is_io = row.task in IO_TASKS
                    if self.store.is_shared or known.get(row.uuid, row.uuid in self.state.tasks) is not is_io:
                        writes.append(PutTask(row.uuid, is_io))
                    known[row.uuid] = is_io
            extended.append(msgspec.structs.replace(item, writes=(*item.writes, *writes)) if writes else item)
        return extended

    def write(self, writes: Iterable[Write]) -> None:
        """Commit writes that fail only after a concurrent change, all or nothing.

        Raises:
            Unavailable: another process made such a change; try again.
        """
        refusal = self.commit([Item(writes=tuple(writes))])[0]
        if refusal is not None:
            raise Unavailable(f"another process changed the same {refusal.table or refusal.kind}; try again")


@contextmanager
def pause_collection() -> Iterator[None]:
    """Pause the garbage collector: it would visit growing data again and again, and find little."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def is_rising(numbers: Sequence[int]) -> bool:
    """Return whether each number is higher than the one before it."""
    return all(one < other for one, other in pairwise(numbers))
