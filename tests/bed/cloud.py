"""Start and end of the whole cloud."""

import grp
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import amqp
import msgspec

from tests.bed import catalog, conf_files, peers, roost_servers
from tests.bed.cloud_api import CloudApi, Refusal
from tests.bed.combinations import Combination
from tests.bed.conf_files import COMPUTES, DATABASES, PASSWORD, SERVICES, Places
from tests.bed.processes import Processes
from tests.support.databases import mariadb
from tests.support.fleets.products import environ
from tests.support.servers.ports import free_ports
from tests.support.servers.rabbitmq import Broker
from tests.support.wait import wait_until

_PROGRAMS = Path(__file__).with_name("programs")
_SETUP_S = 300  # of one command
_START_S = 180
_MARIADB_OPTIONS = ("--max-connections=500", "--innodb-flush-log-at-trx-commit=2", "--skip-log-bin")
# The services of OpenStack have neither this code nor its settings on their path.
_HIDDEN = ("PYTHONPATH", "ROOST_", "OS_")
# Ends last, because the others need it until their end.
_BASE = ("mariadb", "rabbitmq", "epmd")

Report = Callable[[str], None]


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """What a later process needs to find a cloud again."""

    combination: Combination
    places: Places
    durations_s: dict[str, float] = {}


class Cloud:
    """A running cloud in a folder.

    Args:
        folder: of a cloud that was started.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        text = (folder / "cloud.json").read_bytes()
        self.description = msgspec.json.decode(text, type=Description)
        self.processes = Processes(folder)
        self.api = CloudApi(self.places)

    @property
    def places(self) -> Places:
        """Where its parts are."""
        return self.description.places

    @property
    def combination(self) -> Combination:
        """Its Placement and its schedulers."""
        return self.description.combination

    def run(self, program: str, *words: object, is_checked: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program of OpenStack until it ends."""
        result = subprocess.run(
            [_program(program), *map(str, words)],
            cwd=self.folder,
            env=openstack_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=_SETUP_S,
            errors="replace",
        )
        log = self.processes.log("setup")
        log.parent.mkdir(exist_ok=True)
        with log.open("a") as output:
            output.write(f"$ {program} {' '.join(map(str, words))}\n{result.stdout}{result.stderr}")
        if is_checked and result.returncode != 0:
            raise RuntimeError(f"{program} ended with {result.returncode}: see {log}")
        return result

    def nova_manage(self, *words: str, is_checked: bool = True) -> subprocess.CompletedProcess[str]:
        """Run nova-manage."""
        return self.run("nova-manage", "--config-file", self.conf("nova/nova.conf"), *words, is_checked=is_checked)

    def conf(self, name: str) -> Path:
        """Return the path of a configuration file."""
        return self.folder / "etc" / name

    def consumer_count(self) -> int:
        """Return the number of schedulers that serve the queue."""
        host, _, port = self.places.broker_url.rpartition("@")[2].strip("/").partition(":")
        connection = amqp.Connection(host=f"{host}:{port}", login_method="AMQPLAIN", connect_timeout=10)
        try:
            connection.connect()
            return int(connection.channel().queue_declare("scheduler", passive=True).consumer_count)
        except (amqp.exceptions.NotFound, OSError):
            return 0
        finally:
            connection.close()

    def wait_for_schedulers(self, count: int) -> None:
        """Wait until this number of schedulers serve the queue."""
        wait_until(lambda: self.consumer_count() == count, within_s=_START_S)


class _Start:
    """The steps from an empty folder to a cloud."""

    def __init__(self, folder: Path, combination: Combination, *, database: str | None) -> None:
        (folder / "log").mkdir(parents=True)
        self.folder, self.combination = folder, combination
        self._database = database
        for name in ("rabbitmq", "mariadb"):
            (folder / name).mkdir()
        self._processes = Processes(folder)
        self._broker = Broker(folder / "rabbitmq")
        self._processes.add("epmd", self._broker.pids["epmd"])
        ports = dict(zip(SERVICES, free_ports(len(SERVICES)), strict=True))
        if combination.placement == "roost":
            ports["placement"] = ports["roost"]
        self.places = Places(
            folder_path=str(folder),
            ports=ports,
            placement_path=roost_servers.placement_path(combination),
            broker_url=self._broker.url,
            socket=str(folder / "mariadb" / "socket"),
        )
        self._save({})
        self.cloud = Cloud(folder)
        self.cloud.processes = self._processes

    def run(self, report: Report) -> Cloud:
        """Run all steps, with a line for each."""
        steps: dict[str, Callable[[], None]] = {
            "configuration": self._write_files,
            "RabbitMQ and MariaDB": self._start_base,
            "databases": self._fill_databases,
            "Keystone": self._start_keystone,
            "Placement, Glance and Nova": self._start_services,
            "compute services": self._find_computes,
            "schedulers": self._wait_for_schedulers,
        }
        durations_s = {}
        for name, step in steps.items():
            start_s = time.monotonic()
            step()
            durations_s[name] = round(time.monotonic() - start_s, 1)
            report(f"  {durations_s[name]:6.1f} s  start: {name}")
        self._save(durations_s)
        self.cloud.description = self._description
        return self.cloud

    def _save(self, durations_s: dict[str, float]) -> None:
        self._description = Description(combination=self.combination, places=self.places, durations_s=durations_s)
        (self.folder / "cloud.json").write_bytes(msgspec.json.encode(self._description))

    def _write_files(self) -> None:
        program = peers.python()
        assert program is not None, peers.HOW_TO_INSTALL
        conf_files.write(self.places, program.parent.parent / "etc")
        roost_servers.write_settings(self.places)

    def _start_base(self) -> None:
        server = mariadb.Server(self.folder / "mariadb", options=_MARIADB_OPTIONS)
        self._processes.add("mariadb", server.pid)
        server.create_databases(*DATABASES, characters="utf8mb3")
        self._broker.launch()
        self._processes.add("rabbitmq", self._broker.pids["rabbitmq"])
        self._broker.wait()

    def _fill_databases(self) -> None:
        # One core each; the order inside of a part is that of the services' documents.
        parts = (self._fill_keystone, self._fill_nova, self._fill_others)
        with ThreadPoolExecutor(len(parts)) as pool:
            for future in [pool.submit(part) for part in parts]:
                future.result()

    def _fill_keystone(self) -> None:
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
        owner = ("--keystone-user", user, "--keystone-group", group)
        urls = [
            word
            for interface in ("public", "internal", "admin")
            for word in (f"--bootstrap-{interface}-url", self.places.url("keystone"))
        ]
        bootstrap = ("bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", conf_files.REGION, *urls)
        for words in (("db_sync",), ("fernet_setup", *owner), ("credential_setup", *owner), bootstrap):
            conf = self.cloud.conf("keystone/keystone.conf")
            self.cloud.run("keystone-manage", "--config-file", conf, *words)

    def _fill_nova(self) -> None:
        self.cloud.nova_manage("api_db", "sync")
        cell0 = self.places.database("nova_cell0")
        self.cloud.nova_manage("cell_v2", "map_cell0", "--database_connection", cell0)
        self.cloud.nova_manage("cell_v2", "create_cell", "--name", "cell1")
        self.cloud.nova_manage("db", "sync")

    def _fill_others(self) -> None:
        self.cloud.run("glance-manage", "--config-file", self.cloud.conf("glance/glance-api.conf"), "db", "sync")
        if self.combination.placement == "upstream":
            self.cloud.run("placement-manage", "--config-dir", self.cloud.conf("placement"), "db", "sync")

    def _start_keystone(self) -> None:
        self._serve("keystone", "keystone.wsgi.api")
        self._wait_for("keystone", lambda: self.cloud.api.call("keystone", "GET", "/users"))
        catalog.fill(self.cloud.api, self.places)

    def _start_services(self) -> None:
        if self.combination.placement == "upstream":
            self._serve("placement", "placement.wsgi.api")
            self._wait_for("placement", self.cloud.api.providers)
        for name, words in roost_servers.commands(self.combination, self.places, database=self._database):
            self._processes.start(name, words, environ())
            self._wait_for(name, partial(self.cloud.api.call, name, "GET", "/healthz"))
        self._serve("glance", "glance.wsgi.api")
        neutron: list[object] = [_program("python"), _PROGRAMS / "serve_neutron.py", self.places.ports["neutron"]]
        self._processes.start("neutron", neutron, openstack_environment())
        conf: tuple[object, ...] = ("--config-file", self.cloud.conf("nova/nova.conf"))
        self._processes.start("nova-conductor", [_program("nova-conductor"), *conf], openstack_environment())
        if self.combination.has_nova_scheduler:
            # Nova reads a set of hosts; with equal weights, the order of the set decides.
            environment = openstack_environment(PYTHONHASHSEED="0")
            self._processes.start("nova-scheduler", [_program("nova-scheduler"), *conf], environment)
        self._serve("nova", "nova.wsgi.osapi_compute", name="nova-api")
        for host in COMPUTES:
            compute: list[object] = [
                _program("nova-compute"),
                *conf,
                "--config-file",
                self.cloud.conf(f"nova/{host}.conf"),
            ]
            environment = openstack_environment(ROOST_BED_HOST=host, PYTHONPATH=str(_PROGRAMS / "site"))
            self._processes.start(host, compute, environment)
        self._wait_for("nova-api", self.cloud.api.computes)
        self._wait_for("glance", lambda: self.cloud.api.upload_image("tiny"))

    def _find_computes(self) -> None:
        for host in COMPUTES:
            self._wait_for(host, partial(self._is_up, host))
        self.cloud.nova_manage("cell_v2", "discover_hosts")

    def _is_up(self, host: str) -> bool:
        states = {each["host"]: each["state"] for each in self.cloud.api.computes()}
        return states.get(host) == "up" and host in self.cloud.api.providers()

    def _wait_for_schedulers(self) -> None:
        self.cloud.wait_for_schedulers(self.combination.scheduler_count)
        for name in roost_servers.scheduler_names(self.combination):
            self._wait_for(name, partial(self._has_all_hosts, name))

    def _has_all_hosts(self, name: str) -> bool:
        return set(COMPUTES) <= roost_servers.host_names(self.cloud.api.call(name, "GET", "/v1/hosts"))

    def _serve(self, service: str, module: str, *, name: str = "") -> None:
        words = [_program("python"), _PROGRAMS / "serve_wsgi.py", self.places.ports[service], module]
        variable = f"OS_{service.upper()}_CONFIG_DIR"
        environment = openstack_environment(**{variable: str(self.cloud.conf(service))})
        self._processes.start(name or service, words, environment)

    def _wait_for(self, name: str, answer: Callable[[], object]) -> None:
        """Wait until a part answers with a true value or an empty list; fail if its process ends."""

        def is_ready() -> bool:
            if not self._processes.is_alive(name):
                raise RuntimeError(f"{name} ended: see {self._processes.log(name)}")
            try:
                return answer() is not False
            except (OSError, Refusal):
                return False

        wait_until(is_ready, within_s=_START_S)


@contextmanager
def cloud(
    folder: Path, combination: Combination, *, report: Report = print, database: str | None = None
) -> Iterator[Cloud]:
    """Run a cloud during the block; all its processes end after it, also after an error."""
    running = start(folder, combination, report=report, database=database)
    try:
        yield running
    finally:
        end(folder, report=report)


def start(folder: Path, combination: Combination, *, report: Report = print, database: str | None = None) -> Cloud:
    """Start a cloud in an empty folder; ``end`` ends it.

    Args:
        database: the URL of a PostgreSQL database for Roost; None: it uses files.
    """
    if problems := peers.problems():
        raise RuntimeError("; ".join(problems))
    if folder.exists() and any(folder.iterdir()):
        raise RuntimeError(f"{folder} is not empty")
    try:
        return _Start(folder, combination, database=database).run(report)
    except BaseException:
        end(folder, report=report)
        raise


def end(folder: Path, *, report: Report = print) -> None:
    """End all processes of the cloud in a folder; its files stay."""
    processes = Processes(folder)
    names = processes.names
    processes.stop(*(name for name in names if name not in _BASE))
    processes.stop("rabbitmq", "mariadb")
    processes.stop("epmd")
    left = [name for name in names if processes.is_alive(name)]
    report(f"  still running: {', '.join(left)}" if left else "  all processes ended")


def openstack_environment(**more: str) -> dict[str, str]:
    """Return the environment of programs of OpenStack."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_HIDDEN)}
    return inherited | {"PYTHONUNBUFFERED": "1"} | more


def _program(name: str) -> Path:
    found = peers.python()
    if found is None:
        sys.exit(peers.HOW_TO_INSTALL)
    return found.with_name(name)
