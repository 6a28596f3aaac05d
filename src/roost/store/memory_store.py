"""A store without a database, for tests and simulation."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from typing import Any, Self

import msgspec

from roost.model.stored_decision import DecisionQuery
from roost.model.work.work_rows import AgentRow
from roost.model.writes import Change, EvidenceRow, Item, Refusal, Write
from roost.ports import Clock, CommitResult, FeedMark, IdKind, LiveWriter, LoadedDatabase, Past
from roost.store.dump import parts_of
from roost.store.old_changes import find_old_changes
from roost.store.rules.codec import CODECS, decode_writes, encode_writes
from roost.store.rules.commit_rules import are_committable, judge
from roost.store.rules.decision_filter import is_wanted
from roost.store.rules.history_table import MemoryHistory
from roost.store.rules.row_cache import RowCache
from roost.store.rules.schema import CHANGE_RECORD, Table
from roost.store.work_queries import RowQuery, WorkQueries, find_expired, select_rows

_PRUNED_PER_CALL = 2500


class _SharedRows:
    """The rows of a simulated database, shared by the stores of several simulated processes."""

    def __init__(self) -> None:
        self.tables = RowCache()
        self.feed: list[tuple[int, int, bytes]] = []  # position, peer, body
        self.position = 0
        self.peers = 1
        self.next_ids: dict[str, int] = {}


class _Rows:
    """Finds rows by their key, or by a scan of the whole table."""

    def __init__(self, tables: RowCache, clock: Clock) -> None:
        self._tables = tables
        self._clock = clock

    def now_s(self) -> float:
        return self._clock.now_s()

    def find(self, query: RowQuery) -> list[tuple[Any, ...]]:
        return _find(self._tables, query)

    def tally(self, table: Table) -> tuple[int, int]:
        rows = _rows(self._tables, table)
        return len(rows), sum(row.version for row in rows)

    def close(self) -> None:
        """Do nothing: it holds no resources."""


def _find(tables: RowCache, query: RowQuery) -> list[tuple[Any, ...]]:
    return [msgspec.structs.astuple(row) for row in select_rows(query, _matching_keys(tables, query))]


def _matching_keys(tables: RowCache, query: RowQuery) -> list[Any]:
    """Return the rows with the keys of a query, or all rows if it has no condition on the key."""
    for column, operator, value in query.conditions:
        if (column,) == query.table.key and operator in {"=", "in"}:
            keys = [value] if operator == "=" else dict.fromkeys(value)
            rows = map(tables.by_name()[query.table.name].get, keys)
            return [row for row in rows if row is not None]
    return _rows(tables, query.table)


def _rows(tables: RowCache, table: Table) -> list[Any]:
    """Return the rows of a table, copied at one moment: the store may write them meanwhile."""
    return [*tables.by_name()[table.name].rows.values()]


class MemoryStore:
    """Rows in memory, judged item by item. Nothing is durable.

    Several stores may share rows, as several processes share one database: see ``peer``.
    """

    def __init__(self) -> None:
        self._shared = _SharedRows()
        self._peer = 1
        self._seen = 0
        self._own: set[int] = set()
        self.history = MemoryHistory()

    def peer(self) -> Self:
        """Return the store of another process: it shares the rows, and has read nothing yet."""
        other = type(self)()
        self._shared.peers += 1
        other._shared, other._peer = self._shared, self._shared.peers  # noqa: SLF001  # it is the same class
        return other

    @property
    def is_shared(self) -> bool:
        """See ``Store.is_shared``."""
        return self._shared.peers > 1

    @property
    def tables(self) -> RowCache:
        """All present rows, for tests and checks."""
        return self._shared.tables

    def load(self, *, from_rows: bool = False) -> LoadedDatabase:
        """See ``Store.load``."""
        self._seen = self._shared.position
        self._own.clear()
        return LoadedDatabase(self._shared.position, iter(list(parts_of(self._scan))))

    def reserve(self, kind: IdKind, count: int) -> int:
        """See ``Store.reserve``."""
        first = self._shared.next_ids.get(kind, 1)
        self._shared.next_ids[kind] = first + count
        return first

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``."""
        assert are_committable(items), "PutGeneration is never committed"
        refusals: list[Refusal | None] = []
        writes: list[Write] = []
        for item in items:
            refusals.append(judge(self._shared.tables, item))
            if refusals[-1] is None:
                writes.extend(item.writes)
        self._shared.tables.forget_changes()
        if writes:
            self._shared.position += 1
            self._own.add(self._shared.position)
            self._shared.feed.append((self._shared.position, self._peer, encode_writes(writes)))
        return CommitResult(refusals, self._shared.position)

    def changes(self) -> Sequence[Change]:
        """See ``Store.changes``."""
        found = []
        for position, _, body in reversed(self._shared.feed):
            if position <= self._seen:
                break
            if position not in self._own:
                found.append(Change(position, decode_writes(body)))
        self._seen = self._shared.position
        self._own.clear()
        return found[::-1]

    @property
    def process(self) -> int:
        """See ``Store.process``."""
        return 0

    @property
    def visible_changes(self) -> str:
        """See ``Store.visible_changes``: the process, the newest change it read, and its own newest change since."""
        return f"{self._peer} {self._seen} {max(self._own, default=self._seen)}" if self.is_shared else ""

    def past(self, position: int, visible_changes: str, *, after: FeedMark | None = None) -> Past:
        """See ``Store.past``. The feed of this store is never pruned."""
        peer, read, written = map(int, visible_changes.split()) if visible_changes else (0, position, position)
        before = [body for at, by, body in self._shared.feed if at <= read or (by == peer and at <= written)]
        later = (body for at, by, body in self._shared.feed if at > written and peer in (0, by))
        own = next(later, None)
        writes = (write for body in before for write in decode_writes(body))
        return Past(writes, [] if own is None else decode_writes(own))

    def order_creations(self) -> AbstractContextManager[None]:
        """See ``Store.order_creations``. All peers are in one thread."""
        return nullcontext()

    def start_snapshot(self, *, every_bytes: int) -> bool:
        """See ``Store.start_snapshot``. A memory store needs no snapshots."""
        return False

    def start_column_file(self) -> bool:
        """See ``Store.start_column_file``. A memory store has no file."""
        return False

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """See ``Store.evidence``."""
        rows = self._shared.tables.decisions.rows
        if uuid is not None:
            return [row for row in rows.values() if row.uuid == uuid]
        return [rows[number] for number in sorted(rows, reverse=True)[:newest]]

    def refusals(self, *, since_s: float, newest: int) -> list[EvidenceRow]:
        """See ``Store.refusals``."""
        rows = self._shared.tables.decisions.rows
        found = (rows[number] for number in sorted(rows, reverse=True))
        return [row for row in found if row.outcome == "refused" and row.decided_at_s >= since_s][:newest]

    def decisions(self, query: DecisionQuery) -> list[EvidenceRow]:
        """See ``Store.decisions``."""
        rows = self._shared.tables.decisions.rows
        found = (rows[number] for number in sorted(rows, reverse=True))
        return list(islice((row for row in found if is_wanted(row, query)), query.newest))

    def document(self, number: int) -> bytes | None:
        """See ``Store.document``."""
        found = self._shared.tables.documents.get(number)
        return None if found is None else found.body

    def beat(self, hosts: Iterable[str], now_s: float) -> None:
        """See ``Store.beat``."""
        agents = self._shared.tables.work[AgentRow]
        for host in hosts:
            agent = agents.get(host)
            if agent is not None and agent.heard_at_s < now_s:
                agents.fill(msgspec.structs.replace(agent, heard_at_s=now_s))

    def check_writable(self, now_s: float) -> None:
        """See ``Store.check_writable``. Memory is always writable."""

    def live_writers(self) -> Sequence[LiveWriter]:
        """See ``Store.live_writers``. There are no other processes."""
        return ()

    def work_reader(self, clock: Clock) -> WorkQueries:
        """See ``Store.work_reader``."""
        return WorkQueries(_Rows(self._shared.tables, clock))

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """See ``Store.prune``. Only decisions are deleted; the feed stays."""
        rows = self._shared.tables.decisions.rows
        size = sum(len(row.body) for row in rows.values())
        pruned = 0
        for number in sorted(rows):
            if rows[number].decided_at_s >= older_than_s and size <= max_bytes:
                break
            size -= len(rows[number].body)
            del rows[number]
            pruned += 1
        return pruned

    def prune_work(
        self, *, older_than_s: float, changes_older_than_s: float = -math.inf, changes_max: int | None = None
    ) -> int:
        """See ``Store.prune_work``."""
        tables, rows = self._shared.tables.by_name(), partial(_find, self._shared.tables)
        count = len(tables[CHANGE_RECORD.name].rows)
        excess = 0 if changes_max is None else min(_PRUNED_PER_CALL, max(0, count - changes_max))
        expired = find_expired(rows, older_than_s, limit=_PRUNED_PER_CALL)
        expired += find_old_changes(rows, changes_older_than_s, excess=excess, limit=_PRUNED_PER_CALL)
        for table, keys in expired:
            for (key,) in keys:
                tables[table.name].forget(key)
        return sum(len(keys) for _, keys in expired)

    def close(self) -> None:
        """See ``Store.close``."""

    def _scan(self, table: Table) -> Iterator[tuple[Any, ...]]:
        rows, codec = self._shared.tables.by_name()[table.name].rows, CODECS[table.name]
        positions = [codec.table.columns.index(column) for column in table.columns]
        for key in sorted(rows):
            for row in codec.encode(rows[key]):
                yield row if table is codec.table else tuple(row[at] for at in positions)
