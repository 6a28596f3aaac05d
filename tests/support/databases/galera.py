"""A Galera cluster of MariaDB servers on this machine, if it has the programs."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pymysql

from tests.support.databases import mariadb
from tests.support.debian_packages import find_program

_PROVIDERS = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so")
PROVIDER = next((path for path in _PROVIDERS if Path(path).exists()), None)
IS_AVAILABLE = None not in (PROVIDER, mariadb.SERVE, mariadb.INSTALL, find_program("wsrep_sst_rsync"))
MISSING = "no Galera cluster: `make servers` installs it"
_TIMEOUT_S = 120
_STATUS = """
SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS
WHERE VARIABLE_NAME IN ('WSREP_CLUSTER_SIZE', 'WSREP_READY', 'WSREP_LOCAL_STATE_COMMENT')"""


class Node:
    """A server of the cluster; it also listens on a port."""

    def __init__(self, folder: Path, server: mariadb.Server, port: int) -> None:
        self.folder, self.server, self.port = folder, server, port

    def is_ready(self, size: int) -> bool:
        """Return whether the node is in a cluster of this size, and serves clients."""
        with suppress(pymysql.Error):
            status = dict(mariadb.execute(self.server.url(""), _STATUS))
            return (
                status["WSREP_READY"] == "ON"
                and status["WSREP_LOCAL_STATE_COMMENT"] == "Synced"
                and int(status["WSREP_CLUSTER_SIZE"]) == size
            )
        return False


class Cluster:
    """Running nodes, the first of them for all writers.

    Args:
        size: the number of nodes.
    """

    def __init__(self, size: int = 3) -> None:
        assert IS_AVAILABLE, MISSING
        self.nodes: list[Node] = []
        # Of each node: for clients, the group, its first data, and the changes that a starting node lacks.
        self._ports = [tuple(mariadb.free_port() for _ in range(4)) for _ in range(size)]
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

    def _options(self, number: int) -> list[str]:
        sql, group, transfer, changes = self._ports[number]
        others = ",".join(f"127.0.0.1:{ports[1]}" for ports in self._ports[:number])
        provider_options = (
            f"base_port={group};gmcast.listen_addr=tcp://127.0.0.1:{group};"
            f"ist.recv_addr=127.0.0.1:{changes};gcache.size=64M"
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
            f"--wsrep-cluster-address=gcomm://{others}",
            "--wsrep-node-address=127.0.0.1",
            f"--wsrep-node-name=node{number}",
            "--wsrep-slave-threads=4",
            "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=127.0.0.1:{transfer}",
            f"--wsrep-provider-options={provider_options}",
        ]

    def _add(self, number: int) -> None:
        folder = Path(tempfile.mkdtemp(prefix="roost-ga-", dir="/tmp"))
        if number:
            # Another node sends the first data. The program that receives it gives up the rights of root.
            folder.chmod(0o755)
            (folder / "data").mkdir()
            if os.geteuid() == 0:
                shutil.chown(folder / "data", "nobody", "nogroup")
        first_options = ["--wsrep-new-cluster"] if number == 0 else []
        server = mariadb.Server(folder, options=self._options(number), first_options=first_options)
        self.nodes.append(Node(folder, server, self._ports[number][0]))
        self.wait(number + 1)

    def wait(self, size: int, *, without: int | None = None) -> None:
        """Wait until all nodes, or all but one, are in a cluster of this size."""
        self._wait_for([node for number, node in enumerate(self.nodes) if number != without], size)

    def _wait_for(self, nodes: list[Node], size: int) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while not all(node.is_ready(size) for node in nodes):
            assert time.monotonic() < deadline, nodes[-1].server.log.read_text()[-3000:]
            time.sleep(0.1)

    def kill(self, number: int) -> None:
        """Kill a node."""
        self.nodes[number].server.kill()

    def stop(self) -> None:
        """Kill all nodes and delete their files."""
        for node in self.nodes:
            node.server.kill()
            shutil.rmtree(node.folder, ignore_errors=True)


@contextmanager
def cluster(size: int = 3) -> Iterator[Cluster]:
    """Yield a new cluster."""
    running = Cluster(size)
    try:
        yield running
    finally:
        running.stop()
