"""Both orders of a rolling upgrade under load: the program before leaves, or comes back."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from roost.app import audit
from roost.store.backends import status_of, upgrade
from roost.store.rules.schema import SCHEMA_VERSION, SERVED_FROM
from tests.support.fleets.products import ROOT, roost
from tests.support.servers.servers import RunningServer, serve
from tests.support.wait import wait_until
from tests.upgrade.comparison import columns_of
from tests.upgrade.load import Load
from tests.upgrade.older_program import fill_older

_HOSTS = 8


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The load of one process in a rolling upgrade."""

    name: str
    requests: int
    statuses: dict[int, int]
    outage_s_max: float
    problems: list[str]


class Run:
    """One rolling upgrade of a new database.

    Args:
        url: of an empty PostgreSQL database, without tables.
        older: folder with the packages of the program before.
        folder: an empty folder.
    """

    def __init__(self, url: str, older: Path, folder: Path, stack: ExitStack) -> None:
        self._url, self._older, self._folder, self._stack = url, older, folder, stack
        self._seed = 0
        self._live: dict[str, tuple[RunningServer, Load]] = {}
        self.parts: list[Part] = []
        fill_older(older, url, _HOSTS, cwd=folder)

    def join(self, name: str, *, is_older: bool) -> None:
        """Start a server, and its load."""
        place = self._folder / name.replace(" ", "-")
        place.mkdir()
        sources = self._older if is_older else ROOT / "src"
        server = self._stack.enter_context(serve("--database", self._url, noun="up", folder=place, sources=sources))
        self._seed += 1
        self._live[name] = server, Load(server, self._seed)

    def leave(self, name: str) -> None:
        """Take a server out: its clients end, then the server."""
        server, load = self._live.pop(name)
        load.end()
        self.parts.append(
            Part(
                name=name,
                requests=load.count,
                statuses=dict(sorted(load.statuses.items())),
                outage_s_max=load.outage_s_max,
                problems=load.problems,
            )
        )
        assert server.stop() == 0, server.said
        assert not server.problems, server.problems

    def work(self, seconds: float) -> None:
        """Let the load run; each server answers at least some requests."""
        counts = {name: load.count for name, (_, load) in self._live.items()}
        time.sleep(seconds)
        wait_until(lambda: all(load.count > counts[name] + 10 for name, (_, load) in self._live.items()))

    def expand(self) -> None:
        """Run the first half of the upgrade, as an operator does."""
        result = roost("db", "upgrade", "--expand", "--database", self._url, cwd=self._folder)
        assert result.returncode == 0, result.stderr
        assert status_of(self._url).schema == SERVED_FROM

    def finish(self) -> None:
        """Run the second half of the upgrade, as soon as the database shows no older process."""
        wait_until(lambda: "" not in {each["schema"] for each in status_of(self._url).processes})
        upgrade(self._url)
        assert status_of(self._url).schema == SCHEMA_VERSION

    def compare(self) -> None:
        """Compare the columns of all servers with those of a server that has just read the tables."""
        place = self._folder / f"fresh-{len(self.parts)}"
        place.mkdir()
        with self._pause(), serve("--database", self._url, noun="up", folder=place) as fresh:
            expected = columns_of(fresh)
            for name, (server, _) in self._live.items():
                assert columns_of(server) == expected, name
            findings = audit(self._url)
            assert findings == []

    @contextmanager
    def _pause(self) -> Iterator[None]:
        loads = [load for _, load in self._live.values()]
        for load in loads:
            load.pause()
        try:
            yield
        finally:
            for load in loads:
                load.resume()

    def check_live(self, *, older: int, newer: int) -> None:
        """Check the live processes in the database. A process without heartbeats has an entry for each connection."""
        found = Counter(process["schema"] for process in status_of(self._url).processes)
        assert found[SCHEMA_VERSION] == newer, found
        assert found[""] >= older, found
        assert found.total() == found[""] + newer, found

    def end(self) -> list[Part]:
        """Take all servers out; return the load of each process."""
        for name in list(self._live):
            self.leave(name)
        return self.parts


def replace_processes(run: Run, seconds: float) -> list[Part]:
    """Upgrade: the program before serves, the database expands, this program joins, the program before leaves."""
    run.join("older 1", is_older=True)
    run.join("older 2", is_older=True)
    run.work(seconds / 4)
    run.expand()
    run.work(seconds / 4)
    run.join("newer 1", is_older=False)
    run.work(seconds / 4)
    run.check_live(older=2, newer=1)
    run.compare()
    run.leave("older 1")
    run.join("newer 2", is_older=False)
    run.leave("older 2")
    run.finish()
    run.work(seconds / 4)
    run.compare()
    return run.end()


def return_to_older(run: Run, seconds: float) -> list[Part]:
    """Roll back: this program serves the expanded database, the program before joins again, this one leaves."""
    run.expand()
    run.join("newer 1", is_older=False)
    run.join("newer 2", is_older=False)
    run.work(seconds / 3)
    run.join("older 1", is_older=True)
    run.work(seconds / 3)
    run.check_live(older=1, newer=2)
    run.compare()
    run.leave("newer 1")
    run.leave("newer 2")
    run.work(seconds / 3)
    run.compare()
    return run.end()


ORDERS: dict[str, Any] = {"upgrade": replace_processes, "return": return_to_older}
