"""The composition root: the only file that picks implementations."""

import gc
import os
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from roost.compat.adapter import adapt
from roost.compat.aliases import lend_names
from roost.engine.state import State
from roost.engine.types import Amounts
from roost.errors import BadRequest, NotFound, RoostError
from roost.fleet.service import Fleet as FleetService
from roost.model.decision import Decision
from roost.model.evidence import checks_of, unpack
from roost.model.fleet import Departure, Fleet
from roost.model.journal import EvidenceRow
from roost.model.names import uuid_bytes, uuid_text
from roost.model.request import Request
from roost.model.settings import Settings
from roost.placement.current import Current
from roost.placement.service import Placement
from roost.ports import Clock, Random, Store
from roost.scheduler import plugins
from roost.scheduler.select import Scheduler
from roost.settings import data_folder, find_settings, load_settings
from roost.store import opening
from roost.store.audit import Finding, audit
from roost.store.dry import DryStore
from roost.store.memory import MemoryStore
from roost.store.opening import is_postgresql, open_store, upgrade

_DATABASE = "roost.db"
# Old evidence is looked for after so many acts: fewer than the rows that one look may delete, so it keeps up.
_PRUNE_EVERY = 1024
_RANDOM_BLOCK = 512
# What the first byte behind the time becomes in a uuid of version 7, and the first of its last eight.
_VERSION_7 = bytes(0x70 | byte & 0x0F for byte in range(256))
_VARIANT = bytes(0x80 | byte & 0x3F for byte in range(256))
_DAY_S = 86_400.0


class SystemClock:
    """The machine's time."""

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def elapsed_s(self) -> float:
        """Return seconds of a clock that never goes back."""
        return time.perf_counter()


class SystemRandom:
    """Randomness of the operating system, fetched in blocks.

    Uuids are of version 7: their first 48 bits are the time, so new rows go to the end of an index.
    """

    def __init__(self) -> None:
        self._seeds: list[int] = []
        self._tails: list[bytes] = []  # of uuids: all behind the time
        self._process = 0

    def seed(self) -> int:
        """Return a fresh seed, 0..2**62 - 1."""
        if not self._seeds or self._process != os.getpid():
            self._draw()
        return self._seeds.pop()

    def uuids(self, count: int) -> list[bytes]:
        """Return fresh uuids, 16 bytes each, that sort by the time they were made."""
        stamp = int(time.time() * 1000).to_bytes(6, "big")
        found: list[bytes] = []
        while len(found) < count:
            if not self._tails or self._process != os.getpid():
                self._draw()
            wanted = count - len(found)
            found += [stamp + tail for tail in self._tails[-wanted:]]
            del self._tails[-wanted:]
        return found

    def _draw(self) -> None:
        # A forked process must not go on with what its parent drew.
        self._process = os.getpid()
        self._seeds = [number >> 2 for (number,) in struct.iter_unpack("=Q", os.urandom(8 * _RANDOM_BLOCK))]
        drawn = bytearray(os.urandom(10 * _RANDOM_BLOCK))
        drawn[0::10] = drawn[0::10].translate(_VERSION_7)
        drawn[2::10] = drawn[2::10].translate(_VARIANT)
        self._tails = [bytes(drawn[at : at + 10]) for at in range(0, len(drawn), 10)]


class Roost:
    """The whole product in one object: placement, fleet and scheduler over one store.

    One thread uses it at a time.
    """

    def __init__(
        self, store: Store, settings: Settings, *, clock: Clock | None = None, random: Random | None = None,
        current: Current | None = None,
    ) -> None:  # fmt: skip
        """Serve a store.

        Args:
            store: the database.
            settings: rules, options and bounds.
            clock, random: the machine's, if none are given.
            current: what is known of the store already; None: it is loaded.
        """
        self._clock = clock or SystemClock()
        self._random = random or SystemRandom()
        self._settings = settings
        self._store = store
        self._current = Current(store) if current is None else current
        self.placement = Placement(self._current)
        self.fleet = FleetService(self._current)
        self.rules = plugins.build(settings, adapt=adapt)
        self.scheduler = Scheduler(
            placement=self.placement,
            documents=self.fleet,
            rules=self.rules,
            settings=settings.scheduler,
            filter_settings=settings.filter_scheduler,
            default_zone=settings.default.default_availability_zone,
            settings_body=settings.body(),
            group_max=settings.store.group_max,
            clock=self._clock,
            random=self._random,
        )
        self._acts = 0  # since old evidence was looked for
        if current is None:
            # What was loaded lives as long as the process: let the collector not walk it again and again.
            gc.collect()
            gc.freeze()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    @property
    def state(self) -> State:
        """The columns, as of the last act."""
        return self._current.state

    def install(self, fleet: Fleet) -> None:
        """Create a fleet: aggregates, providers, hosts and server groups, in commits of 1,000.

        Raises:
            BadRequest: something in it is malformed, or there already.
            NotFound: something names what is not there.
        """
        # All of it is looked at before any of it is written.
        self.fleet.check_new(fleet)
        self.placement.check_new(fleet.providers, aggregates=[aggregate.uuid for aggregate in fleet.aggregates])
        self.fleet.create_aggregates(fleet.aggregates)
        self.placement.create_providers(fleet.providers)
        self.fleet.register_hosts(fleet.hosts)
        self.fleet.create_groups(fleet.groups)
        gc.collect()
        gc.freeze()

    def fork(
        self, *, settings: Settings | None = None, clock: Clock | None = None, random: Random | None = None
    ) -> "Roost":
        """Return an independent Roost on a copy of the columns as they are now, with no database behind it.

        It decides, claims and releases as this one would, and nothing of it is stored anywhere.

        Args:
            settings, clock, random: where they are to be others than here.
        """
        self._current.refresh()
        current = self._current.fork(lambda position, next_ids: DryStore(position=position, next_ids=next_ids))
        return Roost(
            current.store, settings or self._settings, clock=clock or self._clock, random=random or self._random,
            current=current,
        )  # fmt: skip

    def decide(self, request: Request, *, dry_run: bool = False) -> Decision:
        """Choose hosts for a request and claim them; durable on return, whether granted or refused.

        Args:
            request: what is asked for.
            dry_run: only say what would be decided; nothing is claimed or stored.

        Raises:
            BadRequest: the request cannot be meant.
            NotFound: it names what is not there.
            Conflict: an instance of it exists, or it lost too many races.
            Unavailable: the store failed; nothing is known to be durable.
        """
        decision = self.work([request], dry_run=dry_run)[0]
        assert decision is not None
        return decision

    def work(self, acts: Sequence[Request | Departure], *, dry_run: bool = False) -> list[Decision | None]:
        """Do acts in order, each seeing those before it; durable on return.

        Args:
            acts: requests and departures.
            dry_run: only say what would come of them; nothing is claimed, released or stored.

        Returns:
            One entry an act: its decision, or None for a departure.

        Raises:
            RoostError: the first act that could not be done; the others are done all the same.
        """
        found: list[Decision | None] = []
        for result in self.outcomes(acts, dry_run=dry_run):
            if isinstance(result, RoostError):
                raise result
            found.append(result)
        return found

    def outcomes(
        self, acts: Sequence[Request | Departure], *, dry_run: bool = False
    ) -> list[Decision | RoostError | None]:
        """Do the same, and return the error of an act in its place instead of raising it."""
        if dry_run:
            return self.fork().outcomes(acts)
        results = self.scheduler.work(acts)
        self._acts += len(acts)
        if self._acts >= _PRUNE_EVERY:
            self._acts = 0
            self.prune()
        return results

    def decision(self, uuid: str) -> Decision:
        """Return a stored decision with its evidence.

        Raises:
            NotFound: there is none of that uuid, or it is no longer kept.
        """
        body = uuid_bytes(uuid)
        rows = [] if body is None else self._store.evidence(uuid=body)
        if not rows:
            raise NotFound("decision", uuid)
        return self._unpacked(rows[0])

    def decisions(self, newest: int = 20) -> list[Decision]:
        """Return the newest stored decisions, newest first."""
        return [self._unpacked(row) for row in self._store.evidence(newest=newest)]

    def _unpacked(self, row: EvidenceRow) -> Decision:
        checks = self._store.document(checks_of(row))
        if checks is None:
            raise NotFound("document of the checks of decision", uuid_text(row.uuid))
        return unpack(row, checks)

    def prune(self) -> int:
        """Delete evidence and feed beyond the bounds of the settings, a part of it; return how many rows."""
        bounds = self._settings.store
        oldest_s = self._clock.now_s() - bounds.evidence_keep_days * _DAY_S
        return self._store.prune(older_than_s=oldest_s, max_bytes=bounds.evidence_max_bytes)

    def utilisation(self) -> dict[str, tuple[int, int]]:
        """Return used amount and capacity of each resource class over the fleet, by name."""
        state = self.state
        found = {}
        for class_id, columns in state.classes.items():
            if columns.holders:
                used, capacity = int(columns.used.view.sum()), int(columns.capacity.view.sum())
                found[state.class_ids.name_of(class_id)] = (used, capacity)
        return dict(sorted(found.items()))

    def free_by_provider(self, resource_class: str) -> Amounts:
        """Return what is free of a class.

        Returns:
            int64, shape (providers that offer the class,), in the order in which they were created; below 0
            where a capacity shrank under its use.

        Raises:
            BadRequest: nobody offers the class.
        """
        class_id = self.state.class_ids.id_of(resource_class)
        columns = None if class_id is None else self.state.classes.get(class_id)
        if columns is None:
            raise BadRequest(f"no provider offers {resource_class!r}")
        free: Amounts = columns.free.view[np.array(sorted(columns.holders), dtype=np.intp)]
        return free


def open_roost(
    config: Path | None = None, data: Path | None = None, *, environ: Mapping[str, str] | None = None,
    is_scratch: bool = False,
) -> Roost:  # fmt: skip
    """Open Roost with its settings and its database, created if it is absent.

    Args:
        config: the settings file; None: found by ``$ROOST_CONFIG`` and the usual places, or defaults.
        data: folder of the database; None: a database in memory, gone at the end. A PostgreSQL URL in the
            settings goes before either.
        environ: the environment; None: none.
        is_scratch: whether that URL is passed over, since what happens is not meant for a cloud in service.

    Raises:
        BadSettings: a setting is unknown or wrong.
        Unavailable: the database cannot be used; the message says why.
    """
    settings = _settings(config, environ or {})
    store: Store
    if settings.store.url and not is_scratch:
        store = open_store(settings.store.url, settings=settings.store)
    elif data is None:
        store = MemoryStore()
    else:
        store = open_store(data / _DATABASE, settings=settings.store)
    return Roost(store, settings)


def open_reader(config: Path | None, data: Path | None, *, environ: Mapping[str, str]) -> Roost:
    """Open the database that commands work on for reading, beside the processes that serve it.

    What would write is refused with ``Unavailable``; dry runs and forks are not.

    Raises:
        BadSettings: a setting is unknown or wrong.
        Unavailable: the database cannot be read; the message says why.
    """
    return Roost(opening.open_reader(database_of(config, data, environ)), _settings(config, environ))


def read_settings(config: Path | None, environ: Mapping[str, str]) -> Settings:
    """Return the settings that commands work with.

    Raises:
        BadSettings: a setting is unknown or wrong.
    """
    return _settings(config, environ)


def unstored(settings: Settings, *, clock: Clock, random: Random) -> Roost:
    """Return a Roost on an empty state, with no database behind it: nothing of it is stored anywhere."""
    store = DryStore(position=0, next_ids={})
    return Roost(store, settings, clock=clock, random=random, current=Current(store, state=State()))


def database_of(config: Path | None, data: Path | None, environ: Mapping[str, str]) -> str:
    """Return the URL or path of the database that commands work on."""
    settings = _settings(config, environ)
    if settings.store.url:
        return settings.store.url
    return str(data_folder(None if data is None else str(data), environ, is_root=os.geteuid() == 0) / _DATABASE)


def upgrade_database(config: Path | None, data: Path | None, environ: Mapping[str, str]) -> str:
    """Bring the database to this program's schema; return a sentence that says so."""
    url = database_of(config, data, environ)
    upgrade(url)
    # The address of a server may hold a password.
    return f"{'the PostgreSQL database' if is_postgresql(url) else url} has the schema of this program"


def audit_database(config: Path | None, data: Path | None, environ: Mapping[str, str]) -> "list[Finding]":
    """Check a database by itself, reading only its tables; return what is wrong with it."""
    return audit(database_of(config, data, environ))


def audit_path(data: Path) -> "list[Finding]":
    """Check the database in a data folder."""
    return audit(str(data / _DATABASE))


def _settings(config: Path | None, environ: Mapping[str, str]) -> Settings:
    # Rules may be written for Nova, and import it.
    lend_names()
    # Unlike ``Path.exists`` it also answers about names that no file can have.
    return load_settings(find_settings(None if config is None else str(config), environ, os.path.exists), adapt=adapt)
