"""Fixtures that run a contract test on each kind of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.compute.drivers.fake.guests import MemoryShelf
from roost.ports import Store
from tests.contract.stores import (
    SHARED,
    URL_FIXTURES,
    DurableWorld,
    MemoryWorld,
    SqliteWorld,
    World,
    commit,
    host,
    item,
    offer,
    provider,
)


@pytest.fixture(params=["memory", "sqlite", *SHARED])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Yield a new, empty database."""
    if request.param == "memory":
        yield MemoryWorld()
    else:
        yield from _durable_database(request, tmp_path)


@pytest.fixture(params=["sqlite", *SHARED])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DurableWorld]:
    """Yield a new, empty database that survives its process and keeps snapshots."""
    yield from _durable_database(request, tmp_path)


def _durable_database(request: pytest.FixtureRequest, folder: Path) -> Iterator[DurableWorld]:
    if request.param == "sqlite":
        database: DurableWorld = SqliteWorld(folder / "roost.db")
    else:
        database = SHARED[request.param](request.getfixturevalue(URL_FIXTURES[request.param]))
    yield database
    database.close()


@pytest.fixture
def store(world: World) -> Store:
    """Return a store on a new, empty database."""
    return world.open()


@pytest.fixture
def small_store(store: Store) -> Store:
    """Return a store with two providers of 8 CPU and 100 memory each."""
    for number in (1, 2):
        assert commit(store, item(provider(number), offer(number, cpu=8, memory=100), host(number))) == [""]
    return store


@pytest.fixture(autouse=True)
def private_shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a separate shelf of fake guests for each test."""
    monkeypatch.setattr("roost.compute.drivers.fake.driver._PROCESS_SHELF", MemoryShelf())
