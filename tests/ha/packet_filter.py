"""Cut a node off from all others: the packet filter of the machine drops its packets in both directions."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.support.debian_packages import find_program

_PROGRAM = find_program("iptables")


def problem() -> str:
    """Return why this machine cannot cut off a node; empty if it can."""
    if _PROGRAM is None:
        return "iptables is not installed"
    if os.geteuid() != 0:
        return "packet filters need root"
    name = _chain()
    error = _run("--new-chain", name) or _run("--append", name, "-m", "owner", "--gid-owner", "1", "-j", "DROP")
    _remove(name)
    return error


@contextmanager
def cut_off(ports: Sequence[int], group: int) -> Iterator[None]:
    """Drop all packets to the ports of a node, from these ports, and from all sockets of its group."""
    name = _chain()
    rules = [("-m", "owner", "--gid-owner", group)]
    rules += [("-p", "tcp", side, port) for port in ports for side in ("--dport", "--sport")]
    try:
        _require("--new-chain", name)
        for rule in rules:
            _require("--append", name, *rule, "-j", "DROP")
        _require("--insert", "OUTPUT", "-o", "lo", "-j", name)
        yield
    finally:
        _remove(name)


def _chain() -> str:
    return f"roost-ha-{os.getpid()}"


def _remove(name: str) -> None:
    for words in (("--delete", "OUTPUT", "-o", "lo", "-j", name), ("--flush", name), ("--delete-chain", name)):
        _run(*words)


def _require(*words: object) -> None:
    error = _run(*words)
    assert not error, error


def _run(*words: object) -> str:
    """Run the filter program; return its error in one line."""
    result = subprocess.run([str(_PROGRAM), "-w", *map(str, words)], capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else (result.stderr.strip().splitlines() or ["it failed"])[0]
