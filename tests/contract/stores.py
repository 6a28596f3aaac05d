"""Small values for store tests, and databases that can be opened several times."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from roost.model.work.work_rows import ChangeRow, Put
from roost.model.writes import (
    CLASS_BITS,
    Claim,
    ConsumerRow,
    EvidenceRow,
    InstanceRow,
    InventoryRow,
    Item,
    Place,
    PutHost,
    PutInventories,
    PutProvider,
    PutSymbol,
    Release,
    Write,
)
from roost.ports import Store
from roost.store.mariadb.store import MariaStore
from roost.store.memory_store import MemoryStore
from roost.store.postgresql.store import PostgresStore
from roost.store.sqlite.store import SqliteStore

CPU, MEMORY = 1, 2
VCPU = PutSymbol("resource_class", CPU, "VCPU")


class MemoryWorld:
    """Stores in memory that share their rows."""

    def __init__(self) -> None:
        self._first = MemoryStore()

    def open(self) -> Store:
        """Open another store on the same rows."""
        return self._first.peer()


class SqliteWorld:
    """A SQLite file. Opening it closes the previous store, because a file has one server."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = str(path)
        self._open: SqliteStore | None = None

    def open(self) -> Store:
        """Close the previous store and open the file again."""
        self.close()
        self._open = SqliteStore(self.path)
        return self._open

    def close(self) -> None:
        """Close all open stores."""
        if self._open is not None:
            self._open.close()


class SharedWorld:
    """A database on a server, which any number of stores can open."""

    store: type[MariaStore | PostgresStore]

    def __init__(self, url: str) -> None:
        self.url = url
        self._open: list[MariaStore | PostgresStore] = []

    def open(self) -> Store:
        """Open another store on the database."""
        self._open.append(self.store(self.url))
        return self._open[-1]

    def close(self) -> None:
        """Close all open stores."""
        for store in self._open:
            store.close()


class PostgresWorld(SharedWorld):
    """A PostgreSQL database."""

    store = PostgresStore


class MariaWorld(SharedWorld):
    """A MariaDB database."""

    store = MariaStore


DurableWorld = SqliteWorld | SharedWorld
World = MemoryWorld | DurableWorld
SHARED: dict[str, type[SharedWorld]] = {"postgresql": PostgresWorld, "mariadb": MariaWorld}
# The fixture with the URL of a new database.
URL_FIXTURES = {"postgresql": "postgres_url", "mariadb": "mariadb_url"}


def uuid_of(*words: object) -> bytes:
    """Return 16 bytes that identify the given words."""
    return hashlib.blake2b(repr(words).encode(), digest_size=16).digest()


def provider(number: int, *, parent: PutProvider | None = None, version: int = 1, name: str = "") -> PutProvider:
    root = number if parent is None else parent.root_id
    above = None if parent is None else parent.id
    return PutProvider(number, uuid_of("provider", number), name or f"p{number}", above, root, version)


def offer(number: int, *, expected: int = 0, **totals: int) -> PutInventories:
    """Return inventories of ``cpu`` and ``memory``; both are optional."""
    rows = [
        InventoryRow(CPU if name == "cpu" else MEMORY, total, 0, 1, total, 1, 1.0) for name, total in totals.items()
    ]
    return PutInventories(number, expected, rows)


def host(number: int, *, rack: str = "", provider_id: int = 0, version: int = 1) -> PutHost:
    facts = msgspec.Raw(msgspec.msgpack.encode({"rack": rack}))
    return PutHost(number, provider_id or number, f"h{number}", f"p{provider_id or number}", facts, version)


def inventory(provider_id: int, class_id: int = CPU) -> int:
    return provider_id << CLASS_BITS | class_id


def claim(number: int, *takes: tuple[int, int], places: Iterable[Place] = (), instance: bool = True) -> Claim:
    """Return a claim by one consumer; each take is an inventory and an amount."""
    seats = list(places)
    seat = seats[0] if seats else Place(0, 0, 0, 0, 0)
    instances = [InstanceRow(number, 1, 1, 0, seat.group_id, seat.scope, seat.holder)] if instance else []
    return Claim(
        [ConsumerRow(number, uuid_of("consumer", number), "project", "user")],
        [(number, taken, amount) for taken, amount in takes],
        instances,
        seats,
    )


def release(one: Claim) -> Release:
    return Release([row.id for row in one.consumers], list(one.takes), list(one.places))


def evidence(number: int, *, body: bytes = b"body", at_s: float = 1000.0) -> EvidenceRow:
    return EvidenceRow(number, uuid_of("decision", number), at_s, "granted", "project", 1, "h1", "", body)


def decision_row(
    number: int, *, project: str = "project", hosts: str = "h1", reason: str = "", at_s: float = 1000.0
) -> EvidenceRow:
    """Return a stored decision; with a reason it is a refusal."""
    outcome = "refused" if reason else "granted"
    return EvidenceRow(number, uuid_of("decision", number), at_s, outcome, project, 1, hosts, reason, b"body")


def item(
    *writes: Write, rows: Iterable[EvidenceRow] = (), work: Iterable[Put] = (), trail: Iterable[ChangeRow] = ()
) -> Item:
    return Item(writes, tuple(rows), tuple(work), tuple(trail))


def commit(store: Store, *items: Item) -> list[str]:
    """Commit items; return the kind of each refusal, empty for an accepted item."""
    return ["" if refusal is None else refusal.kind for refusal in store.commit(items).refusals]


def put_providers(store: Store, *numbers: int) -> None:
    """Commit a provider for each number."""
    for number in numbers:
        assert commit(store, item(provider(number))) == [""]


def new_ids(store: Store) -> list[int] | None:
    """Return the providers in the new changes; None: changes are missing."""
    changes = store.changes()
    return None if changes is None else [write.id for change in changes for write in change.writes]


def state(store: Store) -> dict[str, Any]:
    """Return the content of a store in a comparable form."""
    found: dict[str, Any] = {}
    for write in store.load().writes:
        fields: Any = msgspec.to_builtins(write) if not isinstance(write, PutHost) else (write.id, bytes(write.facts))
        kind = type(write).__name__
        if isinstance(write, Claim):
            for name in ("consumers", "takes", "instances", "places"):
                rows = map(tuple, msgspec.to_builtins(getattr(write, name)))
                found.setdefault(name, []).extend(rows)
        else:
            found.setdefault(kind, []).append(fields)
    return {kind: sorted(rows, key=repr) for kind, rows in found.items()}


def generations(store: Store) -> dict[int, int]:
    return {row[1]: row[2] for row in state(store).get("PutGeneration", [])}


def position_of(store: Store) -> int:
    """Load a store and return its feed position."""
    loaded = store.load()
    list(loaded.writes)
    return loaded.position
