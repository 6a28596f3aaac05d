"""A database with a column file."""

from contextlib import closing
from pathlib import Path
from random import Random

from roost.engine.columns.state import State
from roost.model.settings.roost_settings import Store as Settings
from roost.placement.current import Current
from roost.ports import Store
from roost.store.backends import database_at, open_store
from roost.store.column_file.file_place import place_beside, place_in_folder
from tests.contract.stores import DurableWorld, SqliteWorld
from tests.support.fleets.stored_histories import StoredHistory


class Fleet:
    """A database with a column file, and the store that writes it."""

    def __init__(self, world: DurableWorld, folder: Path) -> None:
        self.world = world
        self.settings = Settings(column_folder=str(folder))
        is_file = isinstance(world, SqliteWorld)
        place = place_beside(world.path, self.settings) if is_file else place_in_folder(world.url, self.settings)
        assert place is not None
        self.path = place
        self._store: Store | None = None

    def open(self) -> Store:
        """Open a store; close the one before it."""
        self.close()
        self._store = open_store(self.world.url, settings=self.settings)
        return self._store

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()
        self._store = None

    def write(self) -> None:
        """Write the column file."""
        assert database_at(self.world.url).write_column_file(self.path)

    def load(self) -> State | None:
        """Return the content from the column file; None: it is refused."""
        store = self.open()
        loaded = store.load()
        is_cached = loaded.is_cached
        list(loaded.parts)
        return Current(store).state if is_cached else None

    def load_rows(self) -> State:
        """Return the content from all rows."""
        self.close()
        with closing(open_store(self.world.url, settings=Settings(column_file=False))) as store:
            return Current(store).state


def run_history(fleet: Fleet, seed: int, length: int) -> StoredHistory:
    history = StoredHistory(fleet.open(), Random(seed))
    history.run(length)
    return history


def continue_history(fleet: Fleet, history: StoredHistory, length: int, *, stores: int = 1) -> None:
    """Run a history, with several stores after one another: on a server, each is another writer."""
    for _ in range(stores):
        history._store = fleet.open()
        history.run(length // stores)
