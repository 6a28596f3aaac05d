"""The columns in memory and the store behind them, kept equal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import msgspec

from roost.engine.columns.apply import apply, occupy, raise_generations, recount_hosts, undo_claim
from roost.engine.columns.state import State
from roost.errors import BadRequest, StoreBroken, Unavailable
from roost.model.work.operation import IO_TASKS
from roost.model.work.work_rows import StatusRow
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
from roost.ports import Clock, DepartedInstance, IdKind, Store

# Number of identities fetched from the store at once.
_BLOCK = 4096
# Minimum number of kept rows of deleted providers; above it, at most as many as of live ones. A reload takes time, and
# dead rows take memory and time of each search.
_DEAD_ROWS_MIN = 10_000
# All symbols share one table, so the numbers of each kind have their own range. Custom classes begin at a limit that
# leaves room for new standard ones; an inventory's identity has no room for more classes.
FIRST_NUMBERS = {"resource_class": 10_000, "trait": 1 << CLASS_BITS, "consumer_type": 1 << 32}
# The identities that a decision uses.
_DECIDING: tuple[IdKind, ...] = ("consumer", "decision", "document")
# Seconds before the number of a dropped class may be reused. Until then, a process may not have read the deletion, and
# the feed may name the old class.
REUSE_AFTER_S = 7 * 86_400


class Current:
    """The database as this process knows it, and the way to change both.

    Claims and releases are staged: they apply to the columns at once, so that the next decision sees them, and
    ``flush`` makes them durable as one group. Acknowledge nothing staged before that. All other writes are committed
    first and applied afterwards.
    """

    def __init__(self, store: Store, *, state: State | None = None, clock: Clock | None = None) -> None:
        """Start with the contents of the store, or with a state that equals them.

        Args:
            store: the database.
            state: None: load it.
            clock: dates changes as they reach the columns; None: leave them undated.
        """
        self.store = store
        self._clock = clock
        self.state = State() if state is None else state
        self._staged: list[Item] = []
        self._left: dict[int, DepartedInstance] = {}  # by index of their staged item
        self.ahead = 0  # claims and releases in the columns that are not durable yet
        self._ids: dict[IdKind, tuple[int, int]] = {}
        self._numbered: dict[str, int] = {}  # kind of symbol -> the last assigned number
        self._reused: set[int] = set()  # reassigned numbers of dropped classes
        self._is_stale = state is None
        self.caches: dict[type, Any] = {}  # of responses from these columns, one per class
        self.refresh()

    def fork(self, store_of: Callable[[int, Mapping[IdKind, int]], Store], *, state: State | None = None) -> "Current":
        """Return an independent copy over another store, with the same next identities.

        Args:
            store_of: creates that store from the position and the next identity of each kind.
            state: the state to copy; None: the current columns.
        """
        for kind in _DECIDING:
            if kind not in self._ids:
                first = self.store.reserve(kind, _BLOCK)
                self._ids[kind] = (first, first + _BLOCK)
        store = store_of(self.state.position, {kind: end for kind, (_, end) in self._ids.items()})
        copy = Current(store, state=(state or self.state).fork(), clock=self._clock)
        copy._ids = dict(self._ids)
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

        Ties between equal hosts are broken by the order of their rows, so it must be the same in every process and
        after a restart. ``reserve_in_order`` guarantees it; this check is for databases written without it.

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

        Until the end, no other process creates any, and earlier ones are in the columns.
        """
        with self.store.order_creations():
            self.refresh()
            yield self.store.reserve(kind, count)

    def _reload(self) -> None:
        state = State()
        self._date(state)
        loaded = self.store.load()
        try:
            for write in loaded.writes:
                apply(state, write)
            recount_hosts(state)
        except (msgspec.MsgspecError, ValueError) as error:
            raise StoreBroken(f"the database is corrupt: a row cannot be understood: {error}") from error
        except KeyError as error:
            raise StoreBroken(f"the database is corrupt: a row names number {error}, which is not there") from error
        state.position = loaded.position
        if self.state.consumer_index is not None:
            state.consumers()  # The next request for identities fetches new ones, and may have little time.
        self.state = state
        # After a failover the database may assign these again, to other processes.
        self._ids.clear()
        self._numbered.clear()
        self._reused.clear()
        self.caches.clear()
        self._is_stale = False

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
        """Return the write that gives a class the number of one dropped long ago, because all others are used."""
        before_s = self.state.now_s - REUSE_AFTER_S
        for number, at_s in self.state.class_ids.dropped.items():
            if at_s <= before_s and number not in self._reused:
                self._reused.add(number)
                return ReuseSymbol("resource_class", number, name, at_s)
        # Most of those assigned here are probably unused.
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
            left: releases in the columns that make room for the item's first write; undone if it is refused.

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
        """Add documents to the next commit; they count as known at once."""
        for write in item.writes:
            assert isinstance(write, PutDocument), write
            apply(self.state, write)
        self._staged.append(item)

    def stage_release(self, freed: Release) -> None:
        """Release consumers in the columns now, durably with the next commit."""
        apply(self.state, freed)
        self._staged.append(Item(writes=(freed,)))
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
        # Stale until all of it is applied: an error or an interrupt leaves columns that must be reloaded.
        self._is_stale = True
        committed = self.store.commit(batch)
        verdicts = zip(batch, committed.refusals, strict=True)
        writes = [write for item, refusal in verdicts if refusal is None for write in item.writes]
        changes = [Change(committed.position, writes)]
        if not all(isinstance(write, Claim | Release) for item in batch for write in item.writes):
            # Others may have changed the same rows just before: the feed has the final order.
            others = self.store.changes()
            if others is None:
                self._reload()
                return committed.refusals
            changes = sorted([*others, *changes], key=lambda change: change.position)
        self._apply(changes)
        self._keep_order(counts)
        return committed.refusals

    def _with_tasks(self, items: Iterable[Item]) -> list[Item]:
        """Return items with the begins and ends of tasks that are I/O operations.

        Their rows of work define them. With other processes on the database each is repeated: the known state may be
        older than the row.
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


def is_rising(numbers: Sequence[int]) -> bool:
    """Return whether each number is higher than the one before it."""
    return all(one < other for one, other in pairwise(numbers))
