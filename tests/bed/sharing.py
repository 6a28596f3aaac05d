"""Two of Roost's schedulers and nova-scheduler share the queue, and one of them stops and starts in the middle."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from tests.bed import roost_servers
from tests.bed.cloud import Cloud, Report, cloud
from tests.bed.cloud_api import Refusal
from tests.bed.combinations import Combination
from tests.bed.conf_files import COMPUTES
from tests.bed.operations.boots import create_flavors
from tests.bed.operations.crowds import CALLERS
from tests.bed.operations.groups import create_group
from tests.bed.session import Session
from tests.bed.sharing_report import Policy, SharedServer, SharingReport, summarize
from tests.support.databases import postgres

COMBINATION = Combination(placement="roost", scheduler="both", roosts=2)
SERVERS = 200
# Groups and their members; the other servers have no group.
_GROUPS: dict[Policy, tuple[int, int]] = {"anti-affinity": (10, 3), "affinity": (5, 4)}
_STOP_AT, _START_AT = 50, 110  # boots; so the schedulers that remain have a part for themselves
_WAIT_AT = 140  # boots; the rest waits until the scheduler serves the queue again, so that it has a part, too
_WAIT_S = 120.0
_NAME = "roost-2"  # It stops; the other one also serves Placement.
_PAGE = 200
_SEED = 1


def run_sharing(folder: Path, *, report: Report = print, servers: int = SERVERS) -> SharingReport:
    """Boot servers while the schedulers share the queue; return what became of them."""
    report(f"sharing: Roost's Placement, two of Roost's schedulers and nova-scheduler, {servers} servers")
    database = postgres.Server(fsync=False)
    try:
        url = roost_servers.create_database(database)
        with cloud(folder, COMBINATION, report=report, database=url) as running:
            return _Sharing(running, report).run(servers)
    finally:
        database.stop()


class _Sharing:
    """The boots of one run."""

    def __init__(self, running: Cloud, report: Report) -> None:
        self.cloud, self.session, self._report = running, Session(running), report
        self.policies: dict[str, Policy] = {}  # by name of the group
        self.groups: dict[str, str] = {}  # name of the group by name of the server
        self._lock, self._created = threading.Lock(), 0
        self._refusals: dict[str, str] = {}  # messages by name of the server
        self._before_stop = 0  # calls that the stopped process had answered
        self._stop_due, self._start_due, self._is_back = threading.Event(), threading.Event(), threading.Event()

    def run(self, servers: int) -> SharingReport:
        """Boot all servers, and look at each."""
        create_flavors(self.session)
        hints = dict(self._name_servers(servers))
        names = sorted(hints)
        Random(_SEED).shuffle(names)
        rolling = threading.Thread(target=self._roll)
        rolling.start()
        with ThreadPoolExecutor(CALLERS) as pool:
            list(pool.map(lambda name: self._create(name, hints[name]), names))
            self._stop_due.set()
            self._start_due.set()
            rolling.join()
            names = [name for name in names if name not in self._refusals]
            seen = list(pool.map(self.session.wait_for, names))
        self._report(f"          {len(seen)} servers have their last status")
        deciders = self._deciders()
        shown = [self._look_at(name, server, deciders) for name, server in zip(names, seen, strict=True)]
        return summarize(shown, self.policies, orphans=self._orphans(), calls=self._calls(), refusals=self._refusals)

    def _name_servers(self, servers: int) -> Iterator[tuple[str, dict[str, str]]]:
        """Create the groups; yield the name and the hints of each server."""
        left = servers
        for policy, (count, size) in _GROUPS.items():
            for number in range(count):
                name = f"{policy}-{number}"
                self.policies[name] = policy
                uuid = create_group(self.session, name, policy)
                for member in range(size):
                    self.groups[f"{name}-{member}"] = name
                    yield f"{name}-{member}", {"group": uuid}
                left -= size
        for number in range(left):
            yield f"single-{number}", {}

    def _create(self, name: str, hints: dict[str, str]) -> None:
        if self._created >= _WAIT_AT:
            self._is_back.wait(_WAIT_S)
        try:
            self.session.create(name, "light", hints=hints)
        except Refusal as refusal:
            self._refusals[name] = self.session.plain(refusal.message)
        with self._lock:
            self._created += 1
            if self._created == _STOP_AT:
                self._stop_due.set()
            if self._created == _START_AT:
                self._start_due.set()

    def _roll(self) -> None:
        """Stop one scheduler, and start it again."""
        self._stop_due.wait()
        self._before_stop = self._answers(_NAME)
        self.cloud.processes.stop(_NAME, within_s=30)
        self._report(f"          {_NAME} stopped after {self._created} boots")
        self._start_due.wait()
        self.cloud.processes.restart(_NAME)
        self._report(f"          {_NAME} started after {self._created} boots")
        try:
            self.cloud.wait_for_schedulers(COMBINATION.scheduler_count)
        finally:
            self._is_back.set()
        self._report(f"          {_NAME} serves the queue after {self._created} boots")

    def _deciders(self) -> set[str]:
        """Return the uuids of the servers for which Roost chose a host."""
        found: set[str] = set()
        path = f"/v1/decisions?limit={_PAGE}"
        cursor: str | None = ""
        while cursor is not None:
            page = self.session.api.call("roost", "GET", path + (f"&cursor={cursor}" if cursor else ""))
            found |= {pick["instance_uuid"] for each in page["decisions"] for pick in each["picks"]}
            cursor = page["next"]
        return found

    def _look_at(self, name: str, server: dict[str, object], deciders: set[str]) -> SharedServer:
        uuid = self.session.servers[name]
        host = str(server["OS-EXT-SRV-ATTR:host"] or "")
        fault = server.get("fault")
        return SharedServer(
            name=name,
            status=str(server["status"]),
            host=host,
            fault=self.session.plain(str(fault["message"])) if isinstance(fault, dict) else "",
            claimed_hosts=tuple(sorted(self.session.allocations(uuid))),
            decider="roost" if uuid in deciders else "nova" if host else "",
            group=self.groups.get(name, ""),
        )

    def _orphans(self) -> list[str]:
        """Return the consumers of all hosts that are no servers."""
        providers = self.session.providers()
        paths = [f"/resource_providers/{providers[host]}/allocations" for host in COMPUTES]
        consumers = {each for path in paths for each in self.session.placement("GET", path)["allocations"]}
        return sorted(consumers - set(self.session.servers.values()))

    def _calls(self) -> dict[str, int]:
        """Return the number of calls that each process of Roost answered; its counters start with it."""
        names = roost_servers.scheduler_names(COMBINATION)
        now = {name: self._answers(name) for name in names}
        return {f"{_NAME} before its stop": self._before_stop, **now}

    def _answers(self, name: str) -> int:
        return roost_servers.count_answers(str(self.session.api.call(name, "GET", "/metrics")))
