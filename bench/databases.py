"""Databases to measure on: a fleet is installed once, and every repetition works on a copy of its own."""

import gc
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.fleets import fleet_of
from bench.workloads import Workload
from roost.app import Roost
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.writes import Item, PutDocument
from roost.ports import CommitResult, Store
from roost.settings import load_settings
from roost.store.backends import open_store
from roost.store.memory_store import MemoryStore


class Skipped(Exception):
    """A workload cannot be run here; the message says why."""


class Moment(NamedTuple):
    """A moment on two clocks; that of the processor stands still while others run or a disk is waited for."""

    wall_s: float
    cpu_s: float

    @classmethod
    def now(cls) -> "Moment":
        """Return the present moment of this thread."""
        return cls(time.perf_counter(), time.thread_time())


class TimedStore:
    """A store that notes when it committed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits: list[tuple[Moment, Moment]] = []  # start, end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """Commit, and note when."""
        start = Moment.now()
        committed = self._store.commit(items)
        self.commits.append((start, Moment.now()))
        return committed


class Databases:
    """Databases in one folder, and the servers of PostgreSQL and MariaDB that a workload needs.

    Args:
        folder: where the files are made; it decides what a flush costs.
        postgresql: URL of a running server, of any database there; empty: one of our own is started.
    """

    def __init__(self, folder: Path, *, postgresql: str = "") -> None:
        self.folder = folder
        self._url = postgresql
        self._server: Any = None
        self._copies = 0
        self._newest_url = ""  # of the newest PostgreSQL database
        self._mariadb = ""  # URL of a MariaDB server
        self._servers = ExitStack()

    def close(self) -> None:
        """Stop the servers that were started."""
        self._servers.close()
        if self._server is not None:
            self._server.stop()

    def template(self, fleet: str, hosts: int) -> Path:
        """Return a closed SQLite database with a fleet in it and nothing claimed."""
        path = self.folder / f"{fleet}-{hosts}.db"
        if not path.exists():
            fresh = path.with_suffix(".new")
            with Roost(open_store(fresh, settings=StoreSettings()), load_settings(None)) as roost:
                roost.install(fleet_of(fleet, hosts))
            gc.unfreeze()
            fresh.replace(path)
        return path

    @contextmanager
    def store(self, kind: str, template: Path | None = None) -> Iterator[Store]:
        """Open a store of its own: of SQLite a copy of ``template`` or an empty file, else an empty database."""
        with closing(self._open(kind, template)) as store:
            yield store

    def _open(self, kind: str, template: Path | None) -> Store:
        match kind:
            case "memory":
                return MemoryStore()
            case "postgresql":
                return open_store(self.fresh_postgresql(), settings=StoreSettings())
            case "mariadb":
                return open_store(self.fresh_mariadb(), settings=StoreSettings())
            case "sqlite-full" | "sqlite-normal":
                self._copies += 1
                path = self.folder / f"copy-{self._copies}" / "roost.db"
                path.parent.mkdir()
                if template is not None:
                    shutil.copyfile(template, path)
                return open_store(path, settings=StoreSettings(synchronous=kind.removeprefix("sqlite-").upper()))
            case _:
                raise ValueError(kind)

    @contextmanager
    def roost(self, workload: Workload) -> Iterator[tuple[Roost, TimedStore]]:
        """Open Roost on a fleet of its own, with a store that notes its commits."""
        is_file = workload.store.startswith("sqlite")
        template = self.template(workload.fleet, workload.hosts) if is_file and workload.hosts else None
        with self.store(workload.store, template) as store:
            timed = TimedStore(store)
            settings = load_settings(None)
            roost = Roost(timed, msgspec.structs.replace(settings, tables={"filter_scheduler": dict(workload.options)}))
            if not is_file:
                roost.install(fleet_of(workload.fleet, workload.hosts))
            try:
                yield roost, timed
            finally:
                gc.unfreeze()
                gc.collect()

    @contextmanager
    def writers(self, count: int) -> Iterator[None]:
        """Keep stores open on the newest PostgreSQL database, each with one commit."""
        with ExitStack() as stack:
            for _ in range(count):
                store = stack.enter_context(closing(open_store(self._newest_url, settings=StoreSettings())))
                number = store.reserve("document", 1)
                assert store.commit([Item((PutDocument(number, "bench", number.to_bytes(8), b""),))]).refusals == [None]
            yield

    def fresh_postgresql(self) -> str:
        """Return the URL of a new, empty database.

        Raises:
            Skipped: there is no server.
        """
        server_url = self.postgresql_url()
        import psycopg

        name = f"bench_{uuid.uuid4().hex}"
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        head, _, options = server_url.partition("?")
        self._newest_url = f"{head.rpartition('/')[0]}/{name}" + (f"?{options}" if options else "")
        return self._newest_url

    def fresh_mariadb(self) -> str:
        """Return the URL of a new, empty database on a MariaDB server; the first call starts the server.

        Raises:
            Skipped: its programs or PyMySQL are not there.
        """
        try:
            from tests.support.databases import mariadb
        except ImportError as error:
            raise Skipped(f"no MariaDB: {error}") from None
        if not self._mariadb:
            if mariadb.SERVE is None or mariadb.INSTALL is None:
                raise Skipped("no MariaDB: its programs are not installed")
            self._mariadb = self._servers.enter_context(mariadb.own_server("--innodb-buffer-pool-size=512M")).url("")
        name = f"bench_{uuid.uuid4().hex}"
        mariadb.execute(self._mariadb, f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        return self._mariadb.replace("/?", f"/{name}?")

    def postgresql_url(self) -> str:
        """Return the URL of a server, started with ``fsync`` on if there is none yet.

        Raises:
            Skipped: its programs or psycopg are not there.
        """
        if not self._url:
            try:
                from tests.support.databases.postgres import Server, binaries
            except ImportError as error:
                raise Skipped(f"no PostgreSQL: {error}") from None
            if binaries() is None:
                raise Skipped("no PostgreSQL: its programs are not installed")
            self._server = Server(fsync=True)
            self._url = self._server.url("postgres")
        return self._url
