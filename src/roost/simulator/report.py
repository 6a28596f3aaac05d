"""What a replay found, as a value and as text for people."""

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
_REASONS_SHOWN = 10
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
    return _LONG_LIST.sub(_one_line, msgspec.json.format(msgspec.json.encode(report), indent=2)) + b"\n"


def to_text(report: ReplayReport) -> str:
    """Return the report as text for people, ended by a newline."""
    rows: list[tuple[str, ...]] = [
        ("hosts", f"{report.hosts:,}", f"{report.providers:,} providers, installed in {report.install_s:.2f} s"),
        ("requests", f"{report.requests:,}", ""),
        ("placed", f"{report.placed:,}", f"{_percent(report.placed, report.requests)}"),
        ("refused", f"{report.refused:,}", f"{_percent(report.refused, report.requests)}"),
        ("instances placed", f"{report.instances_placed:,}", f"{report.instances_alive:,} alive at the end"),
        ("decision p50", f"{report.decision_us_p50:,.0f} µs", "search and rank, before the commit"),
        ("decision p99", f"{report.decision_us_p99:,.0f} µs", ""),
        ("decisions a second", f"{report.decisions_per_s:,.0f}", f"durable, {report.work_s:.2f} s in all"),
    ]
    if report.gpu_fragmentation is not None:
        share = f"{report.gpu_fragmentation:.1%}"
        rows.append(("GPU fragmentation", share, "of all GPUs, free but expected to be of no use"))
    parts = [f"replay of {report.workload}"]
    parts += [f"  ({note})" for note in report.notes]
    parts += ["", *aligned(rows, right={1})]
    if report.refused_reasons:
        parts += ["", "refused", *_reasons(report.refused_reasons)]
    if report.classes:
        parts += ["", *_classes(report.classes)]
    return "\n".join(parts) + "\n"


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
        with writable(path):
            beside.write_bytes(to_json(report))
            beside.replace(target)

    with writable(path):
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


def _one_line(found: "re.Match[bytes]") -> bytes:
    return b" ".join(found[0].split()).replace(b"[ ", b"[").replace(b" ]", b"]")


@contextmanager
def writable(path: str) -> Iterator[None]:
    """Turn what keeps a file from being written into a ``BadFile`` that names it."""
    try:
        yield
    except OSError as error:
        raise BadFile(path, f"cannot be written: {error.strerror or error}") from None


def _reasons(reasons: list[RefusedReason]) -> list[str]:
    rows: list[tuple[str, ...]] = [(f"{entry.count:,}", entry.reason) for entry in reasons[:_REASONS_SHOWN]]
    rest = reasons[_REASONS_SHOWN:]
    if rest:
        rows.append(
            (
                f"{sum(entry.count for entry in rest):,}",
                f"for {len(rest):,} other reason{'' if len(rest) == 1 else 's'}",
            )
        )
    return aligned(rows, right={0})


def _classes(classes: list[ClassUse]) -> list[str]:
    rows: list[tuple[str, ...]] = [("class", "capacity", "used at the end", "", "peak", "", "free, stranded", "below")]
    for use in classes:
        stranded = "-" if use.stranded_share is None else f"{use.stranded_share:.1%}"
        rows.append((
            use.resource_class,
            f"{use.capacity:,}",
            f"{use.used:,}",
            _percent(use.used, use.capacity),
            f"{use.peak:,}",
            _percent(use.peak, use.capacity),
            stranded,
            "-" if use.typical is None else f"{use.typical:,}",
        ))  # fmt: skip
    return aligned(rows, right=set(range(1, 8)))


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def aligned(rows: list[tuple[str, ...]], *, right: set[int]) -> list[str]:
    """Return rows as indented lines whose columns stand below each other, those in ``right`` to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
