"""A RabbitMQ broker for the tests, if the machine has the programs."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import amqp

from tests.support import debian_packages
from tests.support.servers.ports import free_ports
from tests.support.wait import wait_until

# The script in the PATH of Debian wants to be another user.
_FOLDER = Path("/usr/lib/rabbitmq/bin")
_SERVE, _CONTROL = _FOLDER / "rabbitmq-server", _FOLDER / "rabbitmqctl"
_EPMD = debian_packages.find_program("epmd")
MISSING = f"RabbitMQ is not installed: {debian_packages.HOW_TO_INSTALL}"
IS_MISSING = not _SERVE.exists() or _EPMD is None
_START_S = 120.0


class Broker:
    """A broker on free ports of the loopback address, with all its files in a folder.

    Args:
        tls: the files of a CA, a certificate and its key, for a second port with TLS.
    """

    def __init__(self, folder: Path, *, tls: tuple[Path, Path, Path] | None = None) -> None:
        self.folder = folder
        self.port, self.tls_port, self._dist_port, self._epmd_port = free_ports(4)
        self._log = (folder / "log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "enabled_plugins").write_text("[].\n")
        lines = [f"listeners.tcp.1 = 127.0.0.1:{self.port}", "log.console = true", "log.console.level = warning"]
        if tls is not None:
            files = zip(("cacertfile", "certfile", "keyfile"), tls, strict=True)
            lines += [f"listeners.ssl.1 = 127.0.0.1:{self.tls_port}"]
            lines += [f"ssl_options.{name} = {path}" for name, path in files]
        (folder / "rabbitmq.conf").write_text("".join(f"{line}\n" for line in lines))
        self._environment = {
            **os.environ,
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"roost{self.port}@localhost",
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        assert _EPMD is not None, MISSING
        self._epmd = subprocess.Popen(
            [_EPMD, "-address", "127.0.0.1", "-port", str(self._epmd_port)],
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    @property
    def pids(self) -> dict[str, int]:
        """The ids of the running processes, by name; each leads a process group."""
        broker = {} if self._process is None else {"rabbitmq": self._process.pid}
        return broker | {"epmd": self._epmd.pid}

    @property
    def url(self) -> str:
        """The URL for ``transport_url``."""
        return f"rabbit://guest:guest@127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Start the broker and wait until it accepts logins."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the broker."""
        self._process = subprocess.Popen(
            [_SERVE], env=self._environment, stdout=self._log, stderr=self._log, start_new_session=True
        )

    def wait(self) -> None:
        """Wait until the broker accepts logins."""
        wait_until(self._accepts_logins, within_s=_START_S)

    def _accepts_logins(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                pass
            connection = self.connect()
        except (OSError, amqp.exceptions.AMQPError):
            return False
        connection.close()
        return True

    def connect(self, virtual_host: str = "/") -> amqp.Connection:
        """Return an open connection of a client."""
        connection = amqp.Connection(
            host=f"127.0.0.1:{self.port}",
            login_method="AMQPLAIN",
            connect_timeout=10,
            read_timeout=30,
            virtual_host=virtual_host,
        )
        connection.connect()
        return connection

    @property
    def is_running(self) -> bool:
        """Whether the broker was started and not killed."""
        return self._process is not None

    def pause(self) -> None:
        """Stop all processes of the broker for a time; its connections stay open and silent."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """End the pause."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill the broker with all its processes, as a loss of power would."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def control(self, *words: str) -> None:
        """Run rabbitmqctl."""
        node = self._environment["RABBITMQ_NODENAME"]
        subprocess.run(
            [_CONTROL, "--node", node, *words],
            env=self._environment,
            check=True,
            stdout=self._log,
            stderr=self._log,
            timeout=60,
        )

    def add_virtual_host(self, name: str) -> "VirtualHost":
        """Create a virtual host, with exchanges and queues of its own."""
        self.control("add_vhost", name)
        self.control("set_permissions", "-p", name, "guest", ".*", ".*", ".*")
        return VirtualHost(self, name)

    def stop(self) -> None:
        """Stop all processes."""
        if self._process is not None:
            self.kill()
        self._epmd.kill()
        self._epmd.wait()
        self._log.close()


class VirtualHost:
    """A part of a broker that has exchanges and queues of its own."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker, self._name = broker, name
        self.url = f"{broker.url}{name}"

    def connect(self) -> amqp.Connection:
        """Return an open connection of a client."""
        return self._broker.connect(self._name)


@contextmanager
def broker(*, tls: tuple[Path, Path, Path] | None = None) -> Iterator[Broker]:
    """Run a broker during the block; ``tls`` as in ``Broker``."""
    folder = Path(tempfile.mkdtemp(prefix="roost-mq-", dir="/tmp"))
    server = Broker(folder, tls=tls)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
