"""Databases that are emptied after each use, which is faster than new ones."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Database(Protocol):
    """A database with our schema."""

    url: str

    def empty(self) -> bool:
        """Disconnect all clients, and restore the initial rows; return False if the schema changed."""

    def drop(self) -> None:
        """Drop the database."""


class UsedDatabases:
    """The emptied databases of each server.

    Args:
        create: creates a database on the server with a URL.
    """

    def __init__(self, create: Callable[[str], Database]) -> None:
        self._create = create
        self._unused: dict[str, list[Database]] = defaultdict(list)  # by URL of the server

    @contextmanager
    def lend(self, server_url: str) -> Iterator[str]:
        """Yield the URL of an empty database with our schema."""
        unused = self._unused[server_url]
        database = unused.pop() if unused else self._create(server_url)
        try:
            yield database.url
        finally:
            if database.empty():
                unused.append(database)
            else:
                database.drop()
