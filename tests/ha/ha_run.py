"""A run: one fault after the other on a cluster under load, each with a comparison at its end."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from roost.app import open_roost
from roost.store.audit import audit
from tests.ha.client import HOSTS, VCPUS, Figures
from tests.ha.cluster import Cluster, Fault
from tests.ha.columns import Tables, compare_server, read_tables
from tests.ha.load import Load
from tests.ha.probe import Probe
from tests.ha.record import Record, find_decision_problems, find_problems
from tests.ha.report import Result
from tests.support.fleets.products import fleet, settings_for
from tests.support.servers.clusters import ServerProgram
from tests.support.wait import wait_until

_BEFORE_S = 3.0
_AFTER_S = 3.0
_RECOVERY_S = 240.0
_SERVERS = 2
Print = Callable[[str], None]


class HaRun:
    """Servers of Roost on a cluster.

    Args:
        cluster: a running cluster with an empty database.
        folder: for the files of the servers.
        report: gets each line of progress.
    """

    def __init__(self, cluster: Cluster, folder: Path, *, report: Print) -> None:
        self._cluster, self._report = cluster, report
        folder.mkdir()
        self._records: list[Record] = []
        settings = settings_for(cluster.url, folder)
        with open_roost(settings, folder) as roost:
            roost.install(fleet(HOSTS, vcpus=VCPUS))
        text = settings.read_text()
        self.servers = [ServerProgram(folder=folder, settings=text, name=f"server{at}") for at in range(_SERVERS)]

    def start(self) -> None:
        """Start the servers."""
        for each in self.servers:
            each.start()

    def stop(self) -> None:
        """Kill the servers."""
        for each in self.servers:
            each.kill()

    def run(self, fault: Fault, *, seed: int) -> Result:
        """Have one fault under load; compare everything after the recovery."""
        if fault.problem:
            return Result(cluster=self._cluster.name, fault=fault.name, target=fault.target, impossible=fault.problem)
        load, probe = Load([each.port for each in self.servers], seed=seed), Probe(self._cluster.connect_probe)
        probe.start()
        load.start()
        recovery = ""
        try:
            time.sleep(_BEFORE_S)
            load.reset_figures()
            probe.reset_figures()
            with fault.during():
                time.sleep(fault.hold_s)
            recovery = self._recover()
            time.sleep(_AFTER_S)
        finally:
            load.stop()
            probe.stop()
        self._records += load.records
        return self._compare(fault, load, probe.figures, recovery=recovery)

    def _recover(self) -> str:
        """Wait until the cluster is healthy; return the problem if it is not."""
        end_s = time.monotonic() + _RECOVERY_S
        while problem := self._cluster.problem():
            if time.monotonic() > end_s:
                return f"the cluster did not recover: {problem}"
            time.sleep(0.5)
        return ""

    def _compare(self, fault: Fault, load: Load, database: Figures, *, recovery: str) -> Result:
        tables = wait_until(self._read_tables)
        problems = find_problems(self._records, tables.holdings)
        problems += find_decision_problems(self._records, tables.decisions)
        consumers = {consumer for record in load.records for consumer in record.possible}
        differences = [
            f"{server.log.stem}: {text}"
            for server in self.servers
            for text in compare_server(server, tables, consumers=consumers)
        ]
        # Clients of the Placement API have consumers without an instance, which the audit calls orphans.
        findings = [each for each in audit(self._cluster.url) if each.check != "orphan"]
        kinds = Counter(each.kind for each in problems)
        return Result(
            cluster=self._cluster.name,
            fault=fault.name,
            target=fault.target,
            outage_s=load.outage_s,
            database_s=database.outage_s,
            longest_wait_s=load.longest_wait_s,
            errors=load.errors,
            acknowledged=sum(record.acknowledged for record in load.records),
            unknown=sum(record.unknown for record in load.records),
            lost=kinds["lost"],
            doubled=kinds["doubled"],
            resurrected=kinds["resurrected"],
            different=kinds["different"],
            columns=len(differences),
            audit=len(findings),
            wrong_answers=len(load.unexpected),
            recovery=recovery,
            details=[
                *(f"{each.kind}: {each.text}" for each in problems),
                *(f"columns: {each}" for each in differences),
                *(f"audit: {each.check}: {each.subject} {each.problem}" for each in findings),
                *(f"wrong answer: {each}" for each in load.unexpected),
            ],
        )

    def _read_tables(self) -> Tables | None:
        try:
            return read_tables(self._cluster.url)
        except Exception as error:  # noqa: BLE001  # Each engine has errors of its own.
            self._report(f"the tables cannot be read yet: {error}")
            return None


def run_faults(cluster: Cluster, folder: Path, faults: Sequence[Fault], *, report: Print) -> Iterator[Result]:
    """Start the cluster and the servers, and yield the result of each fault."""
    with _running(cluster, folder, report=report) as run:
        for seed, fault in enumerate(faults, 1):
            report(f"{cluster.name}: {fault.name} …")
            yield run.run(fault, seed=seed)


@contextmanager
def _running(cluster: Cluster, folder: Path, *, report: Print) -> Iterator[HaRun]:
    try:
        report(f"{cluster.name}: starting three nodes in {folder}")
        cluster.start()
        run = HaRun(cluster, folder / "servers", report=report)
        try:
            run.start()
            yield run
        finally:
            run.stop()
    finally:
        cluster.stop()
