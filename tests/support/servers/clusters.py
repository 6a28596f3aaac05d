"""Servers, conductors and agents as processes that tests kill and restart at the same address."""

import http.client
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.support.fleets.products import ROOT, command, environ, kill
from tests.support.servers.servers import ADMIN, RunningServer

T = TypeVar("T")
_START_S = 60.0
_PATIENCE_S = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")


class ResourceUse:
    """The resources that all runs of a program used: the sum of processor time, and the peak memory."""

    def __init__(self) -> None:
        self.cpu_s, self.peak_bytes = 0.0, 0

    def add(self, pid: int) -> None:
        """Add the usage of a process that is about to end."""
        cpu_s, peak_bytes = resource_use(pid)
        self.cpu_s += cpu_s
        self.peak_bytes = max(self.peak_bytes, peak_bytes)


class Program:
    """A ``roost`` command that can be killed and restarted.

    Args:
        words: the arguments of the command.
        folder: its working directory.
        log: the file for its standard error.
    """

    def __init__(self, *words: object, folder: Path, log: str) -> None:
        self.words, self.folder, self.log = words, folder, folder / log
        self.process: subprocess.Popen[str] | None = None
        self.spent = ResourceUse()
        self.kills = 0

    def start(self) -> str:
        """Start the process; return the first line of its output."""
        with self.log.open("a") as errors:
            self.process = subprocess.Popen(
                command(*self.words),
                cwd=self.folder,
                env=environ(PYTHONFAULTHANDLER="1"),
                text=True,
                stdout=subprocess.PIPE,
                stderr=errors,
                process_group=0,
            )
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    @property
    def lives(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """Kill the process, as a power loss would."""
        if self.process is not None:
            if self.lives:
                self.spent.add(self.process.pid)
                self.kills += 1
            self.process.send_signal(signal.SIGKILL)
            self._reap()

    def stop(self) -> int:
        """Terminate the process; return its exit code."""
        assert self.process is not None
        if self.lives:
            self.spent.add(self.process.pid)
        self.process.send_signal(signal.SIGTERM)
        return self._reap()

    def ended(self) -> int:
        """Wait until the process ends; return its exit code."""
        return self._reap()

    def until(self, true: Callable[[], T]) -> T:
        """Wait until a condition holds while the process runs; return the value of the condition."""
        end_s = time.monotonic() + _PATIENCE_S
        while not (value := true()):
            assert self.lives, self.log.read_text()
            assert time.monotonic() < end_s, self.log.read_text()
            time.sleep(0.05)
        return value

    def last_words(self) -> str:
        """Abort the process if it still runs; return the end of its log, with the stack of each thread."""
        was_alive = self.lives
        if self.process is not None and was_alive:
            self.process.send_signal(signal.SIGABRT)
            self._reap()
        return f"{'lived' if was_alive else 'was dead'}: {self.log.read_text()[-20_000:]}"

    def _reap(self) -> int:
        assert self.process is not None
        code = self.process.wait(timeout=_START_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return code


class ConductorProgram(Program):
    """``roost conductor``, next to the servers of a PostgreSQL database.

    Args:
        folder: the folder of its settings.
        settings: the content of its settings file, which names the database.
        name: the base name of its settings and log files.
    """

    def __init__(self, *, folder: Path, settings: str, name: str = "conductor") -> None:
        config = folder / f"{name}.toml"
        config.write_text(settings, encoding="utf-8")
        super().__init__("conductor", "--config", config, "--data", folder, folder=folder, log=f"{name}.log")

    def start(self) -> str:
        """Start the conductor; return the first line of its output."""
        first = super().start()
        assert first.startswith("listening on http"), (first, self.log.read_text()[-2000:])
        return first


class ServerProgram(Program):
    """``roost up``, which keeps its port over restarts.

    Args:
        words: additional arguments of the command.
        folder: the folder of its data and settings.
        settings: the content of its settings file.
        name: the base name of its settings and log files.
    """

    def __init__(self, *words: object, folder: Path, settings: str, name: str = "server") -> None:
        config = folder / f"{name}.toml"
        config.write_text(settings, encoding="utf-8")
        super().__init__(
            "up",
            "--config",
            config,
            "--data",
            folder,
            *words,
            "--listen",
            "127.0.0.1:0",
            folder=folder,
            log=f"{name}.log",
        )
        self.port = 0

    def start(self) -> str:
        """Start the server and note its port; return the first line of its output."""
        first = super().start()
        found = re.match(r"listening on https?://[\w.]+:(\d+)", first)
        assert found, (first, self.log.read_text()[-2000:])
        self.port = int(found[1])
        self.words = (*self.words[:-1], f"127.0.0.1:{self.port}")
        return first

    @property
    def address(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, object]:
        """Send a request once on a new connection; without a reply it raises an OSError or HTTPException."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            sent = {**ADMIN, "content-type": "application/json", **headers}
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=sent)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text else None

    def listed(self, noun: str, query: str = "") -> list[dict[str, object]]:
        """Return all entries of a list, page by page."""
        found: list[dict[str, object]] = []
        cursor = ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            status, page = self.ask("GET", f"/v1/{noun}?limit=1000{query}{more}")
            assert status == 200, page
            assert isinstance(page, dict)
            found += page[noun]
            cursor = page.get("next")
        return found

    def asked(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, object]:
        """Repeat a request until the server replies, even if the server is killed and restarted."""
        end_s = time.monotonic() + 2 * _START_S
        while True:
            try:
                status, answer = self.ask(method, path, body, **headers)
            except (OSError, http.client.HTTPException) as error:
                status, answer = 503, error
            if status != 503:
                return status, answer
            assert time.monotonic() < end_s, f"{method} {path} has no reply: {answer!r}; it {self.last_words()}"
            time.sleep(0.1)


class AgentsProgram(Program):
    """``roost agent`` with the fake driver, for one host or a fleet; guests and journals outlive the process.

    Args:
        server: the URL of its server.
        words: additional arguments of the command.
        folder: the folder of its journals.
        guests: the state folder of the fake driver; hosts that share it can send guests to each other.
        host: the name of the host, or the prefix of the names of a fleet.
        fleet: the number of hosts of the fleet; 0 is one host without a fleet.
        options: additional options of the driver.
    """

    def __init__(
        self,
        server: str,
        *words: object,
        folder: Path,
        guests: Path,
        host: str,
        fleet: int = 0,
        options: dict[str, object],
    ) -> None:
        driver_options = [word for key, value in options.items() for word in ("--option", f"{key}={value}")]
        super().__init__(
            "agent",
            "--server",
            server,
            "--driver",
            "fake",
            "--host",
            host,
            *(["--fleet", fleet] if fleet else []),
            "--state-dir",
            folder / f"{host}.state",
            "--option",
            f"state={guests}",
            *driver_options,
            *words,
            folder=folder,
            log=f"{host}.log",
        )
        self.host = host
        self.hosts = [f"{host}-{number}" for number in range(1, fleet + 1)] if fleet else [host]


@contextmanager
def running_agents(
    server: RunningServer, folder: Path, *words: object, sources: Path = ROOT / "src"
) -> Iterator[subprocess.Popen[str]]:
    """Run ``roost agent`` with the fake driver in a folder during the block; the folder has its log and journals.

    The package is in the folder ``sources``.
    """
    with (folder / "agent.log").open("w") as errors:
        process = subprocess.Popen(
            command("agent", "--server", server.address, "--driver", "fake", *words),
            cwd=folder,
            env=environ(sources, ROOST_DATA=str(folder)),
            text=True,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            yield process
        finally:
            kill(process)


def resource_use(pid: int) -> tuple[float, int]:
    """Return the processor time of a running process in seconds, and its peak memory in bytes."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0, 0
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    return (int(fields[11]) + int(fields[12])) / _TICKS, int(peak[1]) * 1024 if peak else 0


def guests_on(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the guests in the fake driver's files: by uuid of the guest, its hosts and its state on each."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted((folder / "hosts").glob("*.json")):
        kept = json.loads(path.read_text())
        for uuid, guest in kept.get("guests", {}).items():
            found.setdefault(uuid, []).append((path.stem, guest["state"]))
        for uuid in kept.get("coming", {}).keys() - kept.get("guests", {}).keys():
            # The driver notes the arrival of a running guest only at its next call on that host.
            arrival = folder / "arrivals" / path.stem / f"{uuid}.json"
            text = arrival.read_text() if arrival.exists() else ""
            if text and json.loads(text)["is_running"]:
                found.setdefault(uuid, []).append((path.stem, "running"))
    return found


def hosts_up(server: RunningServer) -> set[str]:
    """Return the names of the hosts that are reported and whose agents are up."""
    agents = server.ask("GET", "/v1/agents", headers=ADMIN)[2]["agents"]
    hosts = server.ask("GET", "/v1/hosts", headers=ADMIN)[2]["hosts"]
    return {each["host"] for each in agents if each["up"]} & {each["host"] for each in hosts}
