"""Three MariaDB servers in a Galera cluster, on the loopback address; the first is for all writers."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.store.backends import upgrade
from tests.ha import node_processes, packet_filter, probe
from tests.ha.cluster import Fault, Target
from tests.ha.peers import HOW_TO_INSTALL
from tests.ha.plain_clients import MariadbClient
from tests.support.databases import galera, mariadb

# After the death of a node: the others wait evs.suspect_timeout, 5 s.
_DEAD = Target(outage_s=8)
# As for PostgreSQL: clients leave the node in order.
_PLANNED = Target(outage_s=2, is_silent=True)
_SILENT_S = 20
_BRIEF_S = 10.0
_GROUPS = tuple(node_processes.group_of(number) for number in (1, 2, 3))
_CONNECTIONS = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE DB = 'roost'"


def missing() -> str:
    """Return the part that this machine lacks, or an empty string."""
    return "" if galera.IS_AVAILABLE else f"there is no Galera: {HOW_TO_INSTALL}"


class GaleraCluster:
    """Galera with all writers on the first node of the URL that answers.

    Args:
        hold_s: how long faults last that do not end by themselves.
    """

    name = "galera"

    def __init__(self, *, hold_s: float) -> None:
        self._hold_s = hold_s
        self._cluster: galera.Cluster | None = None

    @property
    def cluster(self) -> galera.Cluster:
        """The running cluster."""
        assert self._cluster is not None, "it is not started"
        return self._cluster

    @property
    def url(self) -> str:
        """The URL of the database, with all nodes."""
        return self.cluster.url("roost")

    def start(self) -> None:
        """Start all nodes, and create an empty database for Roost and one for the probe."""
        self._cluster = galera.Cluster(3, groups=_GROUPS if os.geteuid() == 0 else ())
        self.cluster.nodes[0].server.create_databases("roost", probe.DATABASE)
        upgrade(self.url)

    def stop(self) -> None:
        """End all processes."""
        if self._cluster is not None:
            for node in self._cluster.nodes:
                node_processes.send(signal.SIGCONT, node.folder)
            self._cluster.stop()

    def problem(self) -> str:
        """Return the first deviation from full health; empty if the cluster is healthy."""
        for number, node in enumerate(self.cluster.nodes):
            if not node.is_ready(3):
                return f"node {number} is not in a cluster of three"
        return ""

    def connect_probe(self) -> probe.Connection:
        """Connect to the database of the probe, on the first node that answers."""
        return MariadbClient([node.port for node in self.cluster.nodes], probe.DATABASE)

    def faults(self) -> tuple[Fault, ...]:
        """Return the faults, in the order of a run."""
        silent, quorum = Target(outage_s=_SILENT_S), Target(outage_s=_BRIEF_S + 60)
        return (
            self._fault("kill", self._without_writer, target=_DEAD),
            self._fault("switchover", self._switch_over, target=_PLANNED, hold_s=5),
            self._fault("restart", self._restart, target=_DEAD, hold_s=1),
            self._fault("freeze", self._freeze, target=silent),
            self._fault("cut", self._cut_off, target=silent, problem=packet_filter.problem()),
            self._fault("coordinator", self._without_quorum, target=quorum, hold_s=_BRIEF_S),
        )

    def _fault(
        self,
        name: str,
        during: Callable[[], Iterator[None]],
        *,
        target: Target,
        hold_s: float | None = None,
        problem: str = "",
    ) -> Fault:
        duration_s = self._hold_s if hold_s is None else hold_s
        return Fault(name=name, during=contextmanager(during), target=target, hold_s=duration_s, problem=problem)

    def writers_node(self) -> int:
        """Return the number of the node with the most connections: processes stay where they are."""
        urls = [self.cluster.socket_url(number, "") for number in range(len(self.cluster.nodes))]
        counts = [mariadb.execute(url, _CONNECTIONS)[0][0] for url in urls]
        return counts.index(max(counts))

    def _without_writer(self) -> Iterator[None]:
        number = self.writers_node()
        self.cluster.kill(number)
        yield
        self.cluster.start(number)

    def _switch_over(self) -> Iterator[None]:
        """Let the node refuse all queries, so that its clients go to another; then stop it, and start it again."""
        number = self.writers_node()
        mariadb.execute(self.cluster.socket_url(number, ""), "SET GLOBAL wsrep_reject_queries = ALL")
        yield
        self.cluster.nodes[number].server.stop()
        self.cluster.start(number)

    def _restart(self) -> Iterator[None]:
        number = self.writers_node()
        self.cluster.nodes[number].server.stop()
        self.cluster.start(number)
        yield

    def _freeze(self) -> Iterator[None]:
        server = self.cluster.nodes[self.writers_node()].server
        server.freeze()
        try:
            yield
        finally:
            server.thaw()

    def _cut_off(self) -> Iterator[None]:
        number = self.writers_node()
        with packet_filter.cut_off(self.cluster.ports(number), _GROUPS[number]):
            yield

    def _without_quorum(self) -> Iterator[None]:
        """Kill two nodes at the same moment: the third accepts no writes until one is back."""
        number = self.writers_node()
        others = [at for at in range(len(self.cluster.nodes)) if at != number]
        for other in others:
            self.cluster.nodes[other].server.freeze()
        for other in others:
            self.cluster.kill(other)
        yield
        # Without a majority, an operator starts the component again; then the others can join.
        mariadb.execute(self.cluster.socket_url(number, ""), "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
        for other in others:
            self.cluster.start(other)


def open_cluster(_folder: Path, *, hold_s: float) -> GaleraCluster:
    """Return a cluster that is not started yet; it has folders of its own."""
    return GaleraCluster(hold_s=hold_s)
