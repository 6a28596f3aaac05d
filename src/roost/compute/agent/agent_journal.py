"""The journal of an agent: orders, resources of guests, and nodes. It survives the process."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from roost.errors import JournalLost, first_line
from roost.model.work.guest_use import GuestUse
from roost.model.work.orders import Order, OrderAnswer

# Numbers of answered orders and of marks to keep, in case orders are delivered again.
TAKEN_MAX, MARKS_MAX = 1_000, 20_000
_SURPLUS = 100  # entries above these limits before the oldest are deleted together
_VERSION = 1
_TABLES = """
    CREATE TABLE entry (
        operation TEXT NOT NULL, number INTEGER NOT NULL, changed INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (operation, number));
    CREATE TABLE mark (instance TEXT PRIMARY KEY NOT NULL, turn INTEGER NOT NULL, number INTEGER NOT NULL,
        changed INTEGER NOT NULL);
    CREATE TABLE holding (
        node TEXT NOT NULL, holder TEXT NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (node, holder));
    CREATE TABLE paused (instance TEXT PRIMARY KEY NOT NULL);
    CREATE TABLE node (name TEXT PRIMARY KEY NOT NULL, uuid TEXT NOT NULL);
"""

Key = tuple[str, int]  # operation and number; they identify an order
Mark = tuple[int, int]  # turn and number of an order; later orders of an instance have higher marks
Row = TypeVar("Row")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An order and its progress: begun, done, and taken once the server has its answer."""

    order: Order
    state: Literal["begun", "done", "taken"]
    answer: OrderAnswer | None = None  # None: the order has not ended


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """Resources of a node that an instance has, or that an operation keeps for it during a move."""

    node: str
    holder: str  # uuid of the instance, or of the operation
    instance: str
    operation: str  # the operation that assigned the resources to the instance
    use: GuestUse


class Journal:
    """A journal. Methods marked durable return once the entry is on disk. Threads may share it.

    Args:
        path: its file, which one agent uses at a time; None: the journal is in memory.

    Raises:
        JournalLost: the file cannot be read or written, or another agent uses it. All methods raise this.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.RLock()
        # Entries and marks are in the order of their last change.
        self._entries: dict[Key, Entry] = {}
        self._marks: dict[str, Mark] = {}
        self._holdings: dict[tuple[str, str], Holding] = {}
        self._paused: set[str] = set()
        self._nodes: dict[str, str] = {}
        self._changed = 0
        self._file = None if path is None else self._open(path)
        self._identity = None if path is None else _identity(path)

    def close(self) -> None:
        """Close the file, after the entry that a thread is writing."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    # --- orders ---

    def entries(self) -> list[Entry]:
        """Return all orders, the last changed at the end."""
        with self._lock:
            return [*self._entries.values()]

    def entry(self, key: Key) -> Entry | None:
        """Return the entry of an order."""
        return self._entries.get(key)

    def mark(self, instance: str) -> Mark:
        """Return the highest turn and number of an instance's orders; orders with lower ones are stale."""
        return self._marks.get(instance, (-1, -1))

    def begin(self, orders: Sequence[Order]) -> None:
        """Record orders before they begin; durable."""
        with self._writing() as write:
            for order in orders:
                self._put(write, Entry(order=order, state="begun"))
                if order.instance is not None:
                    self._raise_mark(write, order.instance, (order.turn, order.number))

    def finish(self, order: Order, answer: OrderAnswer) -> None:
        """Record the answer to an order before it is sent; durable."""
        with self._writing() as write:
            self._put(write, Entry(order=order, state="done", answer=answer))

    def take(self, key: Key) -> None:
        """Record that the server has the answer to an order, and delete the oldest such orders."""
        with self._writing() as write:
            known = self._entries.get(key)
            if known is not None:
                self._put(write, msgspec.structs.replace(known, state="taken"))
            taken = [key for key, entry in self._entries.items() if entry.state == "taken"]
            if len(taken) > TAKEN_MAX + _SURPLUS:
                self._drop(write, taken[:-TAKEN_MAX])

    def forget(self, key: Key) -> None:
        """Delete an order that will be neither carried out nor answered."""
        with self._writing() as write:
            self._drop(write, [key])

    # --- resources of guests ---

    def holdings(self, instance: str) -> list[Holding]:
        """Return the resources of an instance, including those that operations keep for it."""
        with self._lock:
            return [each for each in self._holdings.values() if each.instance == instance]

    def holders(self) -> frozenset[str]:
        """Return the instances with resources of any node, including those that operations keep."""
        with self._lock:
            return frozenset(each.instance for each in self._holdings.values())

    def instances(self, node: str) -> Mapping[str, GuestUse]:
        """Return the resources of a node by instance uuid, for all instances known there."""
        return self._uses_on(node, is_own=True)

    def migrations(self, node: str) -> Mapping[str, GuestUse]:
        """Return the resources of a node that operations keep for moving instances, by operation uuid."""
        return self._uses_on(node, is_own=False)

    def hold(self, instance: str, holdings: Sequence[Holding]) -> None:
        """Replace the resources of an instance, including those that operations keep for it; durable."""
        with self._writing() as write:
            remaining = {(each.node, each.holder) for each in holdings}
            for known in self.holdings(instance):
                if (known.node, known.holder) not in remaining:
                    del self._holdings[known.node, known.holder]
                    write("DELETE FROM holding WHERE node = ? AND holder = ?", known.node, known.holder)
            for each in holdings:
                if self._holdings.get((each.node, each.holder)) != each:
                    self._put_holding(write, each)

    def name_devices(self, node: str, uses: Mapping[str, GuestUse]) -> None:
        """Record the devices of a node by uuid of the instance or migration; durable."""
        with self._writing() as write:
            for holder, use in uses.items():
                known = self._holdings.get((node, holder))
                if known is not None:
                    self._put_holding(write, msgspec.structs.replace(known, use=use))

    # --- guests that wait for a decision ---

    def list_paused(self) -> frozenset[str]:
        """Return the instances whose running guests were stopped until the server decides whether they stay."""
        with self._lock:
            return frozenset(self._paused)

    def pause(self, instance: str) -> None:
        """Record that a running guest is going to be stopped; durable."""
        with self._writing() as write:
            self._paused.add(instance)
            write("INSERT OR REPLACE INTO paused VALUES (?)", instance)

    def resume(self, instance: str) -> None:
        """Delete the record of a stopped guest."""
        with self._writing() as write:
            self._paused.discard(instance)
            write("DELETE FROM paused WHERE instance = ?", instance)

    # --- nodes ---

    def node_uuids(self) -> Mapping[str, str]:
        """Return the uuids of all known nodes, by name."""
        with self._lock:
            return dict(self._nodes)

    def keep_node(self, node: str, uuid: str) -> None:
        """Record the uuid of a node; durable."""
        with self._writing() as write:
            self._nodes[node] = uuid
            write("INSERT OR REPLACE INTO node VALUES (?, ?)", node, uuid)

    def forget_node(self, node: str) -> None:
        """Delete a node."""
        with self._writing() as write:
            self._nodes.pop(node, None)
            write("DELETE FROM node WHERE name = ?", node)

    # --- in memory and in the file ---

    def _uses_on(self, node: str, *, is_own: bool) -> dict[str, GuestUse]:
        with self._lock:
            found = [each for each in self._holdings.values() if each.node == node]
        return {each.holder: each.use for each in found if (each.holder == each.instance) is is_own}

    def _put_holding(self, write: "_Write", holding: Holding) -> None:
        self._holdings[holding.node, holding.holder] = holding
        body = msgspec.msgpack.encode(holding)
        write("INSERT OR REPLACE INTO holding VALUES (?, ?, ?)", holding.node, holding.holder, body)

    def _put(self, write: "_Write", entry: Entry) -> None:
        key = (entry.order.operation, entry.order.number)
        self._entries.pop(key, None)
        self._entries[key] = entry
        self._changed += 1
        write("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", *key, self._changed, msgspec.msgpack.encode(entry))

    def _drop(self, write: "_Write", keys: Iterable[Key]) -> None:
        for key in keys:
            self._entries.pop(key, None)
            write("DELETE FROM entry WHERE operation = ? AND number = ?", *key)

    def _raise_mark(self, write: "_Write", instance: str, mark: Mark) -> None:
        raised = max(mark, self._marks.pop(instance, mark))
        self._marks[instance] = raised
        self._changed += 1
        write("INSERT OR REPLACE INTO mark VALUES (?, ?, ?, ?)", instance, *raised, self._changed)
        if len(self._marks) > MARKS_MAX + _SURPLUS:
            for old in [*self._marks][:-MARKS_MAX]:
                del self._marks[old]
                write("DELETE FROM mark WHERE instance = ?", old)

    @contextmanager
    def _writing(self) -> Iterator["_Write"]:
        """Collect the changes of the block, and write them together; they are durable at its end."""
        with self._lock:
            write = _Write(self._file)
            with explain_file_errors(self._path):
                yield write
                if self._path is not None and _identity(self._path) != self._identity:
                    # No later process would find the entry.
                    raise JournalLost(f"the agent's journal {self._path} was deleted or replaced while it was used")
                write.commit()

    def _open(self, path: Path) -> sqlite3.Connection:
        with explain_file_errors(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(path.parent, os.W_OK, effective_ids=True):  # SQLite would only report an I/O error.
                raise JournalLost(f"the agent's journal {path} cannot be used: its folder cannot be written to")
            path.touch(mode=0o600)
            file = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                # The exclusive lock keeps other processes out until this one ends, however it ends.
                for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL"):
                    file.execute(f"PRAGMA {pragma}")
                file.execute("BEGIN IMMEDIATE")
                (version,) = file.execute("PRAGMA user_version").fetchone()
                if version == 0:
                    for statement in _TABLES.split(";")[:-1]:
                        file.execute(statement)
                    file.execute(f"PRAGMA user_version = {_VERSION}")
                file.execute("COMMIT")
                _check(path, version)
                self._read(file)
            except BaseException:
                file.close()
                raise
            return file

    def _read(self, file: sqlite3.Connection) -> None:
        for changed, body in _rows(file, "SELECT changed, body FROM entry ORDER BY changed", tuple[int, bytes]):
            entry = msgspec.msgpack.decode(body, type=Entry)
            self._entries[entry.order.operation, entry.order.number] = entry
            self._changed = max(self._changed, changed)
        marks = _rows(file, "SELECT * FROM mark ORDER BY changed", tuple[str, int, int, int])
        for instance, turn, number, changed in marks:
            self._marks[instance] = (turn, number)
            self._changed = max(self._changed, changed)
        for (body,) in _rows(file, "SELECT body FROM holding", tuple[bytes]):
            holding = msgspec.msgpack.decode(body, type=Holding)
            self._holdings[holding.node, holding.holder] = holding
        self._paused = {instance for (instance,) in _rows(file, "SELECT instance FROM paused", tuple[str])}
        self._nodes = dict(_rows(file, "SELECT name, uuid FROM node", tuple[str, str]))


def _rows(file: sqlite3.Connection, query: str, row: type[Row]) -> list[Row]:
    """Return rows of a possibly damaged file; msgspec raises an error for a value of another type."""
    return msgspec.convert(file.execute(query).fetchall(), list[row])  # type: ignore[valid-type]  # It is a type.


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of the file at a path; None: there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _check(path: Path, version: int) -> None:
    if version not in (0, _VERSION):
        raise JournalLost(f"the agent's journal {path} has version {version}; this agent supports {_VERSION}")


class _Write:
    """The changes of one journal entry, collected."""

    def __init__(self, file: sqlite3.Connection | None) -> None:
        self._file = file
        self._statements: list[tuple[str, tuple[str | int | bytes, ...]]] = []

    def __call__(self, statement: str, *values: str | int | bytes) -> None:
        if self._file is not None:
            self._statements.append((statement, values))

    def commit(self) -> None:
        if self._file is None or not self._statements:
            return
        self._file.execute("BEGIN IMMEDIATE")
        try:
            for statement, values in self._statements:
                self._file.execute(statement, values)
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise


@contextmanager
def explain_file_errors(path: Path | None) -> Iterator[None]:
    """Turn errors of the file into ``JournalLost``."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise JournalLost(f"the agent's journal {path} is used by another agent") from None
        raise JournalLost(f"the agent's journal {path} cannot be used: {first_line(error)}") from error
    except OSError as error:
        raise JournalLost(f"the agent's journal {path} cannot be used: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise JournalLost(f"the agent's journal {path} is malformed: {first_line(error)}") from error
