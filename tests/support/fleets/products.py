"""The whole product in tests: small fleets, requests, and the ``roost`` command in processes."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.group import ServerGroup
from roost.model.host import HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from roost.simulator.stable_uuids import uuid_of

ROOT = Path(__file__).parents[3]
_COMMAND = (sys.executable, "-m", "roost")


def environ(sources: Path = ROOT / "src", **more: str) -> dict[str, str]:
    """Return an environment that finds this code, without the machine's settings, data and profiles.

    Args:
        sources: the folder with the package.
        more: further variables.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
    inherited["ROOST_PROFILES"] = os.devnull
    return inherited | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(sources)])} | more


def command(*words: object) -> list[str]:
    """Return the command line of ``roost`` with these arguments."""
    return [*_COMMAND, *map(str, words)]


def environ_with_program(folder: Path, **more: str) -> dict[str, str]:
    """Return such an environment, with a script ``roost`` on its path, which this function writes into a folder."""
    programs = folder / "programs"
    programs.mkdir()
    script = programs / "roost"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(_COMMAND)} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    here = environ(**more)
    return here | {"PATH": f"{programs}:{here['PATH']}"}


def roost(*words: object, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run ``roost`` until it ends."""
    return subprocess.run(
        command(*words), cwd=cwd, env=environ(**more), capture_output=True, text=True, check=False, timeout=120
    )


def worker(function: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a test module's function, named ``module:function``, in a new process with open pipes."""
    module, _, name = function.partition(":")
    script = f"from {module} import {name}; {name}(*{arguments!r})"
    return subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environ(),
        text=True,
        bufsize=1,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and close its pipes."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def fleet(count: int, *, vcpus: int, groups: Sequence[ServerGroup] = ()) -> Fleet:
    """Return hosts host-0, host-1, … with ``vcpus`` VCPU each, and 1024 MEMORY_MB per VCPU."""
    providers = [
        ProviderSpec(
            uuid=uuid_of("host", str(number)),
            name=f"host-{number}",
            inventories={"VCPU": Inventory(total=vcpus), "MEMORY_MB": Inventory(total=1024 * vcpus)},
        )
        for number in range(count)
    ]
    hosts = [HostSpec(provider_uuid=root.uuid, host=root.name, node=root.name) for root in providers]
    return Fleet(providers=providers, hosts=hosts, groups=list(groups))


def request(vcpus: int = 1, **more: object) -> Request:
    """Return a request for instances with little memory."""
    return Request(flavor=Flavor(name=f"{vcpus} cores", vcpus=vcpus, memory_mb=16), **more)  # type: ignore[arg-type]


def settings_for(url: str, folder: Path) -> Path:
    """Write a settings file that names a database."""
    path = folder / "roost.toml"
    path.write_text(f'[store]\nurl = "{url}"\n')
    return path
