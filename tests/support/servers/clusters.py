"""Servers and agents as processes of their own, which are killed and started again at the same place."""

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

from tests.support.fleets.products import command, environ, kill
from tests.support.servers.servers import ADMIN, Served

T = TypeVar("T")
_START_S = 60.0
_PATIENCE_S = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Spent:
    """What lives of a program took: processor time of all, memory of the largest."""

    def __init__(self) -> None:
        self.cpu_s, self.peak_bytes = 0.0, 0

    def add(self, pid: int) -> None:
        """Count a life that is about to end."""
        cpu_s, peak_bytes = spent(pid)
        self.cpu_s += cpu_s
        self.peak_bytes = max(self.peak_bytes, peak_bytes)


class Program:
    """A command that lives, is killed, and lives again.

    Args:
        words: of the command, ``roost`` left out.
        folder: where it runs.
        log: the file that takes what it says on standard error.
    """

    def __init__(self, *words: object, folder: Path, log: str) -> None:
        self.words, self.folder, self.log = words, folder, folder / log
        self.process: subprocess.Popen[str] | None = None
        self.spent = Spent()
        self.kills = 0

    def start(self) -> str:
        """Let it live; return the first line that it says."""
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
        """Whether it runs."""
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """End it as the machine would."""
        if self.process is not None:
            if self.lives:
                self.spent.add(self.process.pid)
                self.kills += 1
            self.process.send_signal(signal.SIGKILL)
            self._reap()

    def stop(self) -> int:
        """Tell it to end; return its exit code."""
        assert self.process is not None
        if self.lives:
            self.spent.add(self.process.pid)
        self.process.send_signal(signal.SIGTERM)
        return self._reap()

    def ended(self) -> int:
        """Wait until it ends by itself; return its exit code."""
        return self._reap()

    def until(self, true: Callable[[], T]) -> T:
        """Wait until something is so, as long as it lives; return it."""
        end_s = time.monotonic() + _PATIENCE_S
        while not (found := true()):
            assert self.lives, self.log.read_text()
            assert time.monotonic() < end_s, self.log.read_text()
            time.sleep(0.05)
        return found

    def last_words(self) -> str:
        """End it if it still lives, and return the end of what it said, with where each of its threads was."""
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
    """``roost conductor``, beside the servers of a PostgreSQL database.

    Args:
        folder: of its settings.
        settings: a file of settings, which names the database.
        name: of its settings and its log.
    """

    def __init__(self, *, folder: Path, settings: str, name: str = "conductor") -> None:
        config = folder / f"{name}.toml"
        config.write_text(settings, encoding="utf-8")
        super().__init__("conductor", "--config", config, "--data", folder, folder=folder, log=f"{name}.log")

    def start(self) -> str:
        """Let it live, and take what there is to do."""
        first = super().start()
        assert first.startswith("listening on http"), (first, self.log.read_text()[-2000:])
        return first


class ServerProgram(Program):
    """``roost up``, which is at the same port each time.

    Args:
        words: further ones of the command.
        folder: of its data and settings.
        settings: a file of settings.
        name: of its settings and its log.
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
        """Let it live, and listen."""
        first = super().start()
        found = re.match(r"listening on https?://[\w.]+:(\d+)", first)
        assert found, (first, self.log.read_text()[-2000:])
        self.port = int(found[1])
        self.words = (*self.words[:-1], f"127.0.0.1:{self.port}")
        return first

    @property
    def address(self) -> str:
        """Its address, as a URL."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, object]:
        """Ask once, on a connection of its own; an OSError or HTTPException says that it was not answered."""
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
        """Return all of a list, page by page."""
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
        """Ask until it is answered, however often the server dies meanwhile."""
        end_s = time.monotonic() + 2 * _START_S
        while True:
            try:
                status, answer = self.ask(method, path, body, **headers)
            except (OSError, http.client.HTTPException) as error:
                status, answer = 503, error
            if status != 503:
                return status, answer
            assert time.monotonic() < end_s, f"{method} {path} is not answered: {answer!r}; it {self.last_words()}"
            time.sleep(0.1)


class AgentsProgram(Program):
    """``roost agent`` with the fake driver: one host or a fleet, whose guests and journals outlive it.

    Args:
        server: that it works for.
        words: further ones of the command.
        folder: of its journals.
        guests: folder of what the fake driver keeps; hosts that share it send guests to each other.
        host: name of the host, or the beginning of the names of many.
        fleet: how many; 0: one.
        options: further ones of the driver.
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
        told = [word for key, value in options.items() for word in ("--option", f"{key}={value}")]
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
            *told,
            *words,
            folder=folder,
            log=f"{host}.log",
        )
        self.host = host
        self.hosts = [f"{host}-{number}" for number in range(1, fleet + 1)] if fleet else [host]


@contextmanager
def running_agents(server: Served, folder: Path, *words: object) -> Iterator[subprocess.Popen[str]]:
    """Let ``roost agent`` run meanwhile with the fake driver, in a folder, where it logs."""
    with (folder / "agent.log").open("w") as errors:
        process = subprocess.Popen(
            command("agent", "--server", server.address, "--driver", "fake", *words),
            cwd=folder,
            env=environ(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            yield process
        finally:
            kill(process)


def spent(pid: int) -> tuple[float, int]:
    """Return the processor seconds of a process that runs, and the most memory it ever had, in bytes."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0, 0
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    return (int(fields[11]) + int(fields[12])) / _TICKS, int(peak[1]) * 1024 if peak else 0


def guests_on(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return what the books of the fake driver say: by uuid of each guest, the hosts that have it, with its state."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted((folder / "hosts").glob("*.json")):
        kept = json.loads(path.read_text())
        for uuid, guest in kept.get("guests", {}).items():
            found.setdefault(uuid, []).append((path.stem, guest["state"]))
        for uuid in kept.get("coming", {}).keys() - kept.get("guests", {}).keys():
            # One that came while it ran is noted when its host is asked the next time.
            arrival = folder / "arrivals" / path.stem / f"{uuid}.json"
            text = arrival.read_text() if arrival.exists() else ""
            if text and json.loads(text)["is_running"]:
                found.setdefault(uuid, []).append((path.stem, "running"))
    return found


def up(server: Served) -> set[str]:
    """Return the hosts whose agents are up and which were reported, by name."""
    agents = server.ask("GET", "/v1/agents", headers=ADMIN)[2]["agents"]
    hosts = server.ask("GET", "/v1/hosts", headers=ADMIN)[2]["hosts"]
    return {each["host"] for each in agents if each["up"]} & {each["host"] for each in hosts}
