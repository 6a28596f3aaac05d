"""The report of a replay, as a value and as JSON."""

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from roost.errors import BadFile
from roost.simulator.series import HostUse, Series

# Incremented when a field changes its meaning or is removed, but not for new fields.
REPORT_VERSION = 1
# Lists of numbers and nulls; indented, they would fill hundreds of lines.
_LONG_LIST = re.compile(rb"\[[\s0-9.,eEnul+-]+\]")


class RefusedReason(msgspec.Struct, frozen=True, kw_only=True):
    """Refusals for the same reason."""

    reason: str  # without host counts, so that refusals at different times are counted together
    count: int  # requests
    example: str  # the first of these reasons, in full


class ClassUse(msgspec.Struct, frozen=True, kw_only=True):
    """Use of one resource class in the whole fleet, in the unit of the class."""

    resource_class: str
    capacity: int
    used: int  # at the end
    peak: int  # largest after any chunk
    typical: int | None  # median of the amounts requested from one provider; None: never requested
    stranded_share: float | None  # share of the free amount at the end in pieces smaller than ``typical``


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one replay. A request counts once, for any number of instances: it is placed or refused as a whole."""

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
    decisions_per_s: float  # over ``work_s``
    work_s: float  # time in the scheduler, with durable commits
    install_s: float
    classes: list[ClassUse] = []
    gpu_fragmentation: float | None = None  # share of all GPUs; see ``fragmentation.GpuFragmentation``
    series: Series | None = None  # during the replay
    host_use: HostUse | None = None  # at the end


def to_json(report: msgspec.Struct) -> bytes:
    """Return a report as JSON, indented, with a final newline; each list of numbers is on one line."""
    return _LONG_LIST.sub(_join_lines, msgspec.json.format(msgspec.json.encode(report), indent=2)) + b"\n"


@contextmanager
def json_file(path: str | None) -> Iterator[Callable[[msgspec.Struct], None]]:
    """Provide a function that writes a report to a file as JSON.

    A replay may take hours, so the file is opened before it. The file is created or replaced in one step.

    Args:
        path: of the file; None: the function does nothing.

    Raises:
        BadFile: the file cannot be written.
    """
    if path is None:
        yield lambda _: None
        return
    target = Path(path)
    temporary = target

    def write(report: msgspec.Struct) -> None:
        body = to_json(report)
        with translate_write_errors(path):
            temporary.write_bytes(body)
            temporary.replace(target)

    with translate_write_errors(path):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not target.exists() or target.is_file():  # A device or a pipe is written directly.
            temporary = target.with_name(f"{target.name}.new")
            temporary.touch()
    try:
        yield write
    finally:
        if temporary != target:
            temporary.unlink(missing_ok=True)


def _join_lines(match: "re.Match[bytes]") -> bytes:
    return b" ".join(match[0].split()).replace(b"[ ", b"[").replace(b" ]", b"]")


@contextmanager
def translate_write_errors(path: str) -> Iterator[None]:
    """Raise errors of writing a file as ``BadFile`` with its path."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: the name is invalid, such as one with a NUL.
        raise BadFile(path, f"cannot be written: {getattr(error, 'strerror', None) or error}") from None
