"""Processes in a folder, which another process can find again and end.

A process is known by its id and its time of birth. So an id that the system gave to another process is not taken for
it.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

_PAUSE_S = 0.1
_FILE = "processes.json"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A process that was started."""

    pid: int
    birth: str
    words: tuple[str, ...] = ()  # its command; empty: another part starts it
    environment: dict[str, str] = {}


class Processes:
    """The processes of a cloud; each leads a process group of its own.

    Args:
        folder: for the logs and the list of processes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / _FILE
        text = self._file.read_bytes() if self._file.exists() else b"{}"
        self._entries = msgspec.json.decode(text, type=dict[str, Entry])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all processes that were started, oldest first."""
        return tuple(self._entries)

    def log(self, name: str) -> Path:
        """Return the path of the log of a process."""
        return self._folder / "log" / f"{name}.log"

    def start(self, name: str, words: Sequence[object], environment: Mapping[str, str]) -> None:
        """Start a process; both of its outputs go to its log."""
        log = self.log(name)
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                [str(word) for word in words],
                env=dict(environment),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        process.returncode = 0  # Its end is noticed by its id, so no object waits for it.
        self.add(name, process.pid, words=[str(word) for word in words], environment=environment)

    def add(
        self, name: str, pid: int, *, words: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        """Add a running process to the list."""
        birth = _birth(pid) or ""
        self._entries.pop(name, None)
        self._entries[name] = Entry(pid=pid, birth=birth, words=tuple(words), environment=dict(environment or {}))
        self._file.write_bytes(msgspec.json.encode(self._entries))

    def restart(self, name: str) -> None:
        """Start a process that ended, with its former command."""
        entry = self._entries[name]
        assert entry.words, f"another part starts {name}"
        self.start(name, entry.words, entry.environment)

    def is_alive(self, name: str) -> bool:
        """Return whether a process still runs."""
        entry = self._entries.get(name)
        return entry is not None and _birth(entry.pid) == entry.birth != ""

    def stop(self, *names: str, within_s: float = 15.0) -> None:
        """End processes and their children: with SIGTERM, and after a time with SIGKILL."""
        self._signal(names, signal.SIGTERM)
        end_s = time.monotonic() + within_s
        while any(map(self.is_alive, names)) and time.monotonic() < end_s:
            time.sleep(_PAUSE_S)
        self.kill(*names)

    def kill(self, *names: str) -> None:
        """Kill processes and their children, also the children of those that ended."""
        self._signal(names, signal.SIGKILL)
        end_s = time.monotonic() + 5
        while any(map(self.has_members, names)) and time.monotonic() < end_s:
            time.sleep(_PAUSE_S)

    def has_members(self, name: str) -> bool:
        """Return whether a process or one of its children still runs."""
        entry = self._entries.get(name)
        if entry is None or self.is_alive(name) or _birth(entry.pid) is not None:
            return self.is_alive(name)
        # A group keeps its number for as long as it has a member, so no other process can have it then.
        return any(int(fields[_GROUP]) == entry.pid and fields[_STATE] != "Z" for fields in _statuses())

    def _signal(self, names: Iterable[str], number: signal.Signals) -> None:
        for name in filter(self.has_members, names):
            with suppress(ProcessLookupError):
                os.killpg(self._entries[name].pid, number)

    def cpu_s(self) -> dict[str, float]:
        """Return the processor seconds of each running process and its children, by name."""
        groups = {entry.pid: name for name, entry in self._entries.items() if self.is_alive(name)}
        ticks = dict.fromkeys(groups.values(), 0)
        for fields in _statuses():
            if (name := groups.get(int(fields[_GROUP]))) is not None:
                ticks[name] += sum(map(int, fields[_TIMES]))
        return {name: count / os.sysconf("SC_CLK_TCK") for name, count in ticks.items()}


# Positions in /proc/PID/stat after the name: state, group, times of the process and of ended children, birth.
_STATE, _GROUP, _TIMES, _BIRTH = 0, 2, slice(11, 15), 19


def _fields(path: Path) -> list[str]:
    return path.read_text().rpartition(")")[2].split()


def _statuses() -> Iterable[list[str]]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # The process may have ended.
            yield _fields(path)


def _birth(pid: int) -> str | None:
    """Return the time of birth of a process in ticks; None: it ended."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        fields = _fields(Path(f"/proc/{pid}/stat"))
    except OSError:
        return None
    return None if fields[_STATE] == "Z" else fields[_BIRTH]
