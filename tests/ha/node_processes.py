"""The processes of a node: all that work in its folder, also children with sessions of their own.

PostgreSQL refuses to run as root. So root starts a node in a user namespace, where its processes have another user
id, but the files of root stay readable. Each node has a group id, by which a packet filter knows it.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_REAPER = Path(__file__).with_name("reaper.py")
_PAUSE_S = 0.05
_GROUP_MIN = 50_000
_IS_ROOT = os.geteuid() == 0
_AS_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


def group_of(number: int) -> int:
    """Return a group id for a node of this run."""
    return _GROUP_MIN + os.getpid() % 2_000 * 8 + number


def start(
    words: Sequence[object],
    folder: Path,
    *,
    group: int,
    log: Path,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Start a program in the folder of a node; return its process id.

    Args:
        words: its command.
        folder: its working directory.
        group: its group id, if this user may set it.
        log: the file for both outputs.
        environment: additional variables.
    """
    prefix = _AS_USER if _IS_ROOT else ()
    identity = {"group": group, "extra_groups": []} if _IS_ROOT else {}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*prefix, sys.executable, str(_REAPER), *map(str, words)],
            cwd=folder,
            env=os.environ | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            **identity,
        )
    process.returncode = 0  # Its end is noticed by its id, so no object waits for it.
    return process.pid


def find(*folders: Path) -> list[int]:
    """Return the ids of all processes with a working directory in one of the folders."""
    inside = tuple(f"{folder.resolve()}" for folder in folders)
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # The process may have ended, or belong to another user.
            target = str(link.readlink())
            if any(target == each or target.startswith(f"{each}/") for each in inside):
                found.append(int(link.parent.name))
    return found


def send(number: signal.Signals, *folders: Path) -> None:
    """Send a signal to all processes of the folders, until no new ones appear."""
    reached: set[int] = set()
    while new := set(find(*folders)) - reached - {os.getpid()}:
        for process in new:
            with suppress(ProcessLookupError):
                os.kill(process, number)
        reached |= new


def end(*folders: Path, within_s: float = 20.0) -> None:
    """Kill all processes of the folders, frozen or not, and wait until they are gone."""
    end_s = time.monotonic() + within_s
    found: set[int] = set()
    while alive := set(find(*folders)) - {os.getpid()}:
        assert time.monotonic() < end_s, f"processes in {folders} do not end"
        found |= alive
        send(signal.SIGKILL, *folders)
        time.sleep(_PAUSE_S)
    for process in found:
        with suppress(ChildProcessError):  # Most are children of others.
            os.waitpid(process, 0)
