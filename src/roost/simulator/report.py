"""What a replay found, as a value and as JSON."""

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from roost.errors import BadFile
from roost.simulator.series import HostUse, Series

# Raised when a field changes its meaning or goes; new fields alone do not raise it.
REPORT_VERSION = 1
# Of numbers and nulls: hundreds of lines that nobody reads.
_LONG_LIST = re.compile(rb"\[[\s0-9.,eEnul+-]+\]")


class RefusedReason(msgspec.Struct, frozen=True, kw_only=True):
    """Refusals that lack the same things."""

    reason: str  # without numbers of hosts, so that refusals at different times are counted together
    count: int  # requests
    example: str  # the first such line, in full


class ClassUse(msgspec.Struct, frozen=True, kw_only=True):
    """How one resource class was used, over the whole fleet and in the unit of the class."""

    resource_class: str
    capacity: int
    used: int  # at the end
    peak: int  # largest after any chunk
    typical: int | None  # median of the amounts asked of one provider; None: nobody asked
    stranded_share: float | None  # of what is free at the end, in pieces smaller than ``typical``


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one replay. All or nothing: a request counts once, whatever its number of instances."""

    version: int = REPORT_VERSION
    workload: str
    notes: tuple[str, ...] = ()
    hosts: int
    providers: int
    requests: int
    placed: int
    refused: int
    instances_placed: int
    instances_alive: int  # at the end
    refused_reasons: list[RefusedReason] = []  # most common first
    decision_us_p50: float  # search and rank, without the commit
    decision_us_p99: float
    decisions_per_s: float  # of the time in which the scheduler worked, durable commits included
    work_s: float
    install_s: float
    classes: list[ClassUse] = []
    gpu_fragmentation: float | None = None  # share of all GPUs; see ``fragmentation.GpuFragmentation``
    series: Series | None = None  # along the way
    host_use: HostUse | None = None  # at the end


def to_json(report: msgspec.Struct) -> bytes:
    """Return a report as JSON for programs, indented and ended by a newline; long lists have a line each."""
    return _LONG_LIST.sub(_join_lines, msgspec.json.format(msgspec.json.encode(report), indent=2)) + b"\n"


@contextmanager
def json_file(path: str | None) -> Iterator[Callable[[msgspec.Struct], None]]:
    """Give a function that writes a report to a file as JSON; None: nowhere.

    A replay may take hours, so the file is tried before it; it appears, or changes, only when it is whole.

    Raises:
        BadFile: the file cannot be written.
    """
    if path is None:
        yield lambda _: None
        return
    target = Path(path)
    beside = target

    def write(report: msgspec.Struct) -> None:
        body = to_json(report)
        with translate_write_errors(path):
            beside.write_bytes(body)
            beside.replace(target)

    with translate_write_errors(path):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not target.exists() or target.is_file():  # A device or a pipe is written as it is.
            beside = target.with_name(f"{target.name}.new")
            beside.touch()
    try:
        yield write
    finally:
        if beside != target:
            beside.unlink(missing_ok=True)


def _join_lines(match: "re.Match[bytes]") -> bytes:
    return b" ".join(match[0].split()).replace(b"[ ", b"[").replace(b" ]", b"]")


@contextmanager
def translate_write_errors(path: str) -> Iterator[None]:
    """Turn what keeps a file from being written into a ``BadFile`` that names it."""
    try:
        yield
    except (OSError, ValueError) as error:  # The latter where no file can have that name.
        raise BadFile(path, f"cannot be written: {getattr(error, 'strerror', None) or error}") from None
