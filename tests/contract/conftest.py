"""One world a store: a fixture that every contract test runs on each of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.compute.drivers.fake.guests import MemoryShelf
from roost.ports import Store
from tests.contract.stores import MemoryWorld, PostgresWorld, SqliteWorld, World, commit, host, item, offer, provider


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Give a new, empty database."""
    if request.param == "memory":
        yield MemoryWorld()
    else:
        yield from _lasting(request, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteWorld | PostgresWorld]:
    """Give a new, empty database that lasts, and keeps snapshots."""
    yield from _lasting(request, tmp_path)


def _lasting(request: pytest.FixtureRequest, folder: Path) -> Iterator[SqliteWorld | PostgresWorld]:
    if request.param == "sqlite":
        made: SqliteWorld | PostgresWorld = SqliteWorld(folder / "roost.db")
    else:
        made = PostgresWorld(request.getfixturevalue("postgres_url"))
    yield made
    made.close()


@pytest.fixture
def store(world: World) -> Store:
    """Give a store of a new, empty database."""
    return world.open()


@pytest.fixture
def small(store: Store) -> Store:
    """Give a store with two providers of 8 CPU and 100 memory each."""
    for number in (1, 2):
        assert commit(store, item(provider(number), offer(number, cpu=8, memory=100), host(number))) == [""]
    return store


@pytest.fixture(autouse=True)
def own_shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hosts with the fake driver find in this process what the same test left, and no other."""
    monkeypatch.setattr("roost.compute.drivers.fake.driver._PROCESS_SHELF", MemoryShelf())
