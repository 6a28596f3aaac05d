"""Three PostgreSQL servers under Patroni, with etcd, on the loopback address."""

import http.client
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from tests.ha import node_processes, packet_filter, probe
from tests.ha.cluster import Fault, Target
from tests.ha.peers import HOW_TO_INSTALL, patroni_python
from tests.ha.plain_clients import PostgresqlClient
from tests.support.databases import postgres
from tests.support.debian_packages import find_program
from tests.support.servers.ports import lasting_ports
from tests.support.wait import wait_until

TTL_S = 20
_START_S = 120.0
_ADDRESS = "127.0.0.1"
# The settings of docs/high-availability.md.
DYNAMIC = {
    "ttl": TTL_S,
    "loop_wait": 1,
    "retry_timeout": 5,
    "primary_start_timeout": 15,
    "synchronous_mode": True,
    "synchronous_mode_strict": True,
    "synchronous_node_count": 1,
    "failsafe_mode": True,
    "postgresql": {
        "use_pg_rewind": True,
        "parameters": {
            "wal_log_hints": "on",
            "wal_retrieve_retry_interval": "100ms",
            "recovery_init_sync_method": "syncfs",
            "max_connections": 100,
        },
    },
}
_HEALTHY = ["leader", "replica", "sync_standby"]


def missing() -> str:
    """Return the part that this machine lacks, or an empty string."""
    if postgres.binaries() is None:
        return f"there is no PostgreSQL: {HOW_TO_INSTALL}"
    if find_program("etcd") is None:
        return f"there is no etcd: {HOW_TO_INSTALL}"
    return "" if patroni_python() is not None else f"there is no Patroni: {HOW_TO_INSTALL}"


class Node:
    """A PostgreSQL server with its Patroni.

    Args:
        folder: for its files; its path is short, because that of a socket has at most 107 bytes.
        number: from 1.
        ports: of PostgreSQL and of Patroni.
        coordinator: the address of etcd.
    """

    def __init__(self, folder: Path, number: int, *, ports: tuple[int, int], coordinator: str) -> None:
        self.name, self.folder = f"node{number}", folder / f"node{number}"
        self.folder.mkdir()
        self.group = node_processes.group_of(number)
        self.port, self.rest_port = ports
        self._log = folder / f"{self.name}.log"
        (self.folder / "patroni.json").write_text(json.dumps(self._settings(coordinator)))

    def _settings(self, coordinator: str) -> dict[str, Any]:
        rest, server = f"{_ADDRESS}:{self.rest_port}", f"{_ADDRESS}:{self.port}"
        roles = {"username": "roost", "password": "roost"}
        return {
            "scope": "roost",
            "name": self.name,
            "restapi": {"listen": rest, "connect_address": rest},
            "etcd3": {"hosts": [coordinator]},
            "bootstrap": {"dcs": DYNAMIC, "initdb": [{"encoding": "UTF8"}, {"locale": "C"}]},
            "postgresql": {
                "listen": server,
                "connect_address": server,
                "data_dir": str(self.folder / "data"),
                "bin_dir": str(postgres.binaries()),
                "pgpass": str(self.folder / "pgpass"),
                "use_unix_socket": True,
                "authentication": {"superuser": roles, "replication": roles, "rewind": roles},
                "pg_hba": ["local all all trust", "host all all all trust", "host replication all all trust"],
                "parameters": {"unix_socket_directories": str(self.folder), "shared_buffers": "64MB"},
                "basebackup": [{"checkpoint": "fast"}],
            },
        }

    def start(self) -> None:
        """Start Patroni; it starts PostgreSQL."""
        python = patroni_python()
        assert python is not None, missing()
        words = (python, "-m", "patroni", self.folder / "patroni.json")
        node_processes.start(words, self.folder, group=self.group, log=self._log)

    def kill(self) -> None:
        """Kill all processes of the node at the same moment."""
        node_processes.send(signal.SIGSTOP, self.folder)
        node_processes.end(self.folder)

    def kill_postmaster(self) -> None:
        """Kill the first process of PostgreSQL; the others end by themselves."""
        os.kill(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def ask(self, method: str, path: str, body: object = None, *, timeout_s: float = 60.0) -> tuple[int, str]:
        """Send a request to Patroni."""
        connection = http.client.HTTPConnection(_ADDRESS, self.rest_port, timeout=timeout_s)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


class Etcd:
    """An etcd of one process.

    Args:
        folder: for its files.
        ports: for clients and for other members.
    """

    def __init__(self, folder: Path, *, ports: tuple[int, int]) -> None:
        self.folder = folder / "etcd"
        self.folder.mkdir()
        self.port, self._peer_port = ports
        self._log = folder / "etcd.log"

    @property
    def address(self) -> str:
        """The host and port for clients."""
        return f"{_ADDRESS}:{self.port}"

    def start(self) -> None:
        """Start it, also after ``kill``."""
        client, peer = f"http://{self.address}", f"http://{_ADDRESS}:{self._peer_port}"
        options = {
            "name": "etcd",
            "data-dir": self.folder / "data",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"etcd={peer}",
        }
        words = [find_program("etcd"), *(f"--{name}={value}" for name, value in options.items())]
        node_processes.start(words, self.folder, group=node_processes.group_of(0), log=self._log)

    def kill(self) -> None:
        """Kill it."""
        node_processes.end(self.folder)


class PatroniCluster:
    """Patroni with synchronous replication.

    Args:
        folder: an existing folder with a short path.
        hold_s: how long faults last that do not end by themselves.
    """

    name = "patroni"

    def __init__(self, folder: Path, *, hold_s: float = 40.0) -> None:
        self._hold_s = hold_s
        ports = iter(lasting_ports(8))
        self._etcd = Etcd(folder, ports=(next(ports), next(ports)))
        self.nodes = tuple(
            Node(folder, number, ports=(next(ports), next(ports)), coordinator=self._etcd.address)
            for number in (1, 2, 3)
        )

    @property
    def url(self) -> str:
        """The URL of the database, with all nodes."""
        return self._url("roost")

    def _url(self, database: str) -> str:
        return f"postgresql://roost@{','.join(f'{_ADDRESS}:{node.port}' for node in self.nodes)}/{database}"

    def start(self) -> None:
        """Start all nodes, and create an empty database for Roost and one for the probe."""
        self._etcd.start()
        for node in self.nodes:
            node.start()
            if node is self.nodes[0]:
                wait_until(lambda: self.roles().get("node1") == "leader", within_s=_START_S)
        wait_until(lambda: not self.problem(), within_s=_START_S)
        with self._connect("postgres") as connection:
            connection.execute("CREATE DATABASE roost")
            connection.execute(f"CREATE DATABASE {probe.DATABASE}")

    def stop(self) -> None:
        """End all processes."""
        node_processes.end(*(node.folder for node in self.nodes), self._etcd.folder)

    def members(self) -> list[dict[str, Any]]:
        """Return the members, as the first Patroni that answers sees them."""
        for node in self.nodes:
            try:
                status, text = node.ask("GET", "/cluster", timeout_s=2)
            except (OSError, http.client.HTTPException):
                continue
            if status == 200:
                found: list[dict[str, Any]] = json.loads(text)["members"]
                return found
        return []

    def roles(self) -> dict[str, str]:
        """Return the role of each running node."""
        return {each["name"]: each["role"] for each in self.members() if each["state"] in {"running", "streaming"}}

    def problem(self) -> str:
        """Return the first deviation from full health; empty if the cluster is healthy."""
        members = self.members()
        if sorted(each["role"] for each in members) != _HEALTHY:
            return f"the roles are {[(each['name'], each['role'], each['state']) for each in members]}"
        if len({each.get("timeline") for each in members}) != 1:
            return "the timelines differ"
        states = {each["name"]: each["state"] for each in members}
        if sorted(states.values()) != ["running", "streaming", "streaming"]:
            return f"the states are {states}"
        return ""

    def primary(self) -> Node:
        """Return the leader."""
        names = wait_until(lambda: [name for name, role in self.roles().items() if role == "leader"])
        return next(node for node in self.nodes if node.name == names[0])

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the primary."""
        with self._connect("roost") as connection:
            return connection.execute(statement.encode()).fetchall()

    def _connect(self, database: str) -> "psycopg.Connection[tuple[Any, ...]]":
        url = f"{self._url(database)}?target_session_attrs=read-write&connect_timeout=5"
        return psycopg.connect(url, autocommit=True)

    def connect_probe(self) -> probe.Connection:
        """Connect to the database of the probe, on the primary."""
        return PostgresqlClient(self._url(probe.DATABASE))

    def faults(self) -> tuple[Fault, ...]:
        """Return the faults, in the order of a run."""
        dead, gone = Target(outage_s=TTL_S + 1), Target(outage_s=TTL_S + 10)
        brief = Target(outage_s=2, is_silent=True)
        fault = partial(self._fault, hold_s=self._hold_s)
        return (
            fault("kill", self._without_primary, target=dead),
            fault("postmaster", self._kill_postmaster, target=Target(outage_s=3, is_silent=True), hold_s=5),
            fault("switchover", self._switch_over, target=brief, hold_s=5),
            fault("restart", self._restart, target=brief, hold_s=5),
            fault("freeze", self._freeze, target=gone),
            fault("cut", self._cut_off, target=gone, problem=packet_filter.problem()),
            fault("coordinator", self._without_etcd, target=brief),
        )

    def _fault(
        self,
        name: str,
        during: Callable[[], Iterator[None]],
        *,
        target: Target,
        hold_s: float,
        problem: str = "",
    ) -> Fault:
        return Fault(name=name, during=contextmanager(during), target=target, hold_s=hold_s, problem=problem)

    def _without_primary(self) -> Iterator[None]:
        node = self.primary()
        node.kill()
        yield
        node.start()

    def _kill_postmaster(self) -> Iterator[None]:
        self.primary().kill_postmaster()
        yield

    def _switch_over(self) -> Iterator[None]:
        node = self.primary()
        status, text = node.ask("POST", "/switchover", {"leader": node.name})
        assert status == 200, text
        yield

    def _restart(self) -> Iterator[None]:
        status, text = self.primary().ask("POST", "/restart", {})
        assert status == 200, text
        yield

    def _freeze(self) -> Iterator[None]:
        node = self.primary()
        node_processes.send(signal.SIGSTOP, node.folder)
        try:
            yield
        finally:
            node_processes.send(signal.SIGCONT, node.folder)

    def _cut_off(self) -> Iterator[None]:
        node = self.primary()
        with packet_filter.cut_off((node.port, node.rest_port), node.group):
            yield

    def _without_etcd(self) -> Iterator[None]:
        self._etcd.kill()
        yield
        self._etcd.start()


def open_cluster(folder: Path, *, hold_s: float) -> PatroniCluster:
    """Return a cluster that is not started yet."""
    return PatroniCluster(folder, hold_s=hold_s)
