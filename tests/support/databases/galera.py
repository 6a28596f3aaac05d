"""A Galera cluster of MariaDB servers on this machine, if it has the programs."""

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pymysql

from tests.support.databases import mariadb
from tests.support.debian_packages import find_program
from tests.support.servers.ports import lasting_ports

_PROVIDERS = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so")
PROVIDER = next((path for path in _PROVIDERS if Path(path).exists()), None)
IS_AVAILABLE = None not in (PROVIDER, mariadb.SERVE, mariadb.INSTALL, find_program("wsrep_sst_rsync"))
MISSING = "no Galera cluster: `make servers` installs it"
_TIMEOUT_S = 180
_ANSWER_S = 10.0
_PAUSE_S = 0.1
_STARTS_MAX = 3  # of a node: on a busy machine, a first transfer or a handshake of the group may take too long
_STATUS = """
SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS
WHERE VARIABLE_NAME IN ('WSREP_CLUSTER_SIZE', 'WSREP_READY', 'WSREP_LOCAL_STATE_COMMENT')"""
# Of the guide: with the defaults, no node takes writes for 1.5 to 3 s when a node joins.
_QUICK = "evs.keepalive_period=PT0.3S;evs.inactive_check_period=PT0.1S;evs.join_retrans_period=PT0.3S"
# Seconds after which the others exclude a silent node: the default, and one for a machine with other work.
SUSPECT_S, PATIENT_S = 5, 10


class Node:
    """A server of the cluster, which listens on a port of the loopback address."""

    def __init__(self, folder: Path, server: mariadb.Server, port: int) -> None:
        self.folder, self.server, self.port = folder, server, port

    def state(self) -> dict[str, str]:
        """Return what the node reports of itself to a client on its port; empty without an answer."""
        with suppress(OSError, pymysql.Error), socket.create_connection(("127.0.0.1", self.port), _ANSWER_S) as opened:
            connection = pymysql.Connection(
                user="root", read_timeout=_ANSWER_S, write_timeout=_ANSWER_S, defer_connect=True
            )
            connection.connect(opened)
            with closing(connection), connection.cursor() as cursor:
                cursor.execute(_STATUS)
                return dict(cursor.fetchall())
        return {}

    def is_ready(self, size: int) -> bool:
        """Return whether the node is in a cluster of this size, and serves clients."""
        return self.state() == {
            "WSREP_READY": "ON",
            "WSREP_LOCAL_STATE_COMMENT": "Synced",
            "WSREP_CLUSTER_SIZE": str(size),
        }


class Cluster:
    """Running nodes, the first of them for all writers.

    Args:
        size: the number of nodes.
        suspect_s: seconds after which the others exclude a silent node.
        groups: the group id of each node's processes, by which a packet filter knows them; empty: that of this process.
    """

    def __init__(self, size: int = 3, *, suspect_s: int = SUSPECT_S, groups: Sequence[int] = ()) -> None:
        assert IS_AVAILABLE, MISSING
        self.nodes: list[Node] = []
        self._suspect_s, self._groups = suspect_s, groups
        # Of each node: for clients, the group, its first data, and the changes that a starting node lacks.
        self._ports: list[Sequence[int]] = []
        try:
            for number in range(size):
                self._add(number)
        except BaseException:
            self.stop()
            raise

    def url(self, database: str) -> str:
        """Return a URL with all nodes as hosts, in order."""
        return self.url_of(database, *self.nodes)

    def url_of(self, database: str, *nodes: Node) -> str:
        """Return a URL with some nodes as hosts, in order."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        return f"mysql://root@{hosts}/{database}"

    def socket_url(self, number: int, database: str) -> str:
        """Return the URL of one node."""
        return self.nodes[number].server.url(database)

    def ports(self, number: int) -> Sequence[int]:
        """Return all ports of a node."""
        return self._ports[number]

    def _options(self, number: int) -> list[str]:
        sql, group, transfer, changes = self._ports[number]
        provider_options = (
            f"base_port={group};gmcast.listen_addr=tcp://127.0.0.1:{group};"
            f"ist.recv_addr=127.0.0.1:{changes};gcache.size=64M;"
            f"evs.suspect_timeout=PT{self._suspect_s}S;evs.inactive_timeout=PT{self._suspect_s * 3}S;"
            f"{_QUICK};gmcast.peer_timeout=PT10S;pc.announce_timeout=PT10S;pc.wait_prim_timeout=PT60S"
        )
        return [
            f"--port={sql}",
            "--bind-address=127.0.0.1",
            "--innodb-buffer-pool-size=32M",
            "--innodb-flush-log-at-trx-commit=0",
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
            "--wsrep-on=ON",
            f"--wsrep-provider={PROVIDER}",
            "--wsrep-node-address=127.0.0.1",
            f"--wsrep-node-name=node{number}",
            "--wsrep-slave-threads=4",
            "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=127.0.0.1:{transfer}",
            f"--wsrep-provider-options={provider_options}",
        ]

    def _address(self, number: int) -> str:
        """Return the option with the nodes that a node joins: all others that exist."""
        others = [ports[1] for at, ports in enumerate(self._ports) if at != number]
        return f"--wsrep-cluster-address=gcomm://{','.join(f'127.0.0.1:{port}' for port in others)}"

    def _add(self, number: int) -> None:
        """Start a new node; repeat a failed start with new ports and an empty folder."""
        for attempt in range(1, _STARTS_MAX + 1):
            self._ports.append(lasting_ports(4))
            folder = Path(tempfile.mkdtemp(prefix="roost-ga-", dir="/tmp"))
            try:
                self.nodes.append(Node(folder, self._start_server(number, folder), self._ports[number][0]))
                self.wait(number + 1)
            except BaseException as error:
                self._remove(number, folder)
                if attempt == _STARTS_MAX or not isinstance(error, AssertionError):
                    raise
            else:
                return

    def _start_server(self, number: int, folder: Path) -> mariadb.Server:
        if number:
            (folder / "data").mkdir()
            _give_to_receiver(folder)
        return mariadb.Server(
            folder,
            options=self._options(number),
            first_options=[self._address(number), *(() if number else ("--wsrep-new-cluster",))],
            group=self._groups[number] if self._groups else None,
        )

    def _remove(self, number: int, folder: Path) -> None:
        """Remove the last node, after a failed start."""
        if len(self.nodes) > number:
            self.nodes.pop().server.kill()
        self._ports.pop()
        shutil.rmtree(folder, ignore_errors=True)

    def wait(self, size: int, *, without: int | None = None) -> None:
        """Wait until all nodes, or all but one, are in a cluster of this size, and serve clients."""
        nodes = [node for number, node in enumerate(self.nodes) if number != without]
        deadline = time.monotonic() + _TIMEOUT_S
        while late := [node for node in nodes if not node.is_ready(size)]:
            node = late[0]
            assert node.server.is_running, f"{node.folder.name} ended:\n{node.server.log_end}"
            assert time.monotonic() < deadline, (
                f"{node.folder.name} is not ready after {_TIMEOUT_S} s: {node.state()}\n{node.server.log_end}"
            )
            time.sleep(_PAUSE_S)

    def kill(self, number: int) -> None:
        """Kill a node."""
        self.nodes[number].server.kill()

    def start(self, number: int) -> None:
        """Start a node that ended; it joins the others, and receives all data if it was killed."""
        _give_to_receiver(self.nodes[number].folder)
        self.nodes[number].server.start(self._address(number))

    def stop(self) -> None:
        """Kill all nodes and delete their files."""
        for node in self.nodes:
            node.server.kill()
            shutil.rmtree(node.folder, ignore_errors=True)


def _give_to_receiver(folder: Path) -> None:
    """Let the program that receives the data of another node write: it gives up the rights of root."""
    folder.chmod(0o755)
    if os.geteuid() == 0:
        for path in (folder / "data", *(folder / "data").rglob("*")):
            shutil.chown(path, "nobody", "nogroup")


@contextmanager
def cluster(size: int = 3) -> Iterator[Cluster]:
    """Yield a new cluster for a machine with other work."""
    running = Cluster(size, suspect_s=PATIENT_S)
    try:
        yield running
    finally:
        running.stop()
