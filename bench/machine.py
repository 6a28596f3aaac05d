"""What the figures were measured on, and two yardsticks: a flush of its disk and a fixed piece of work."""

import os
import platform
import re
import sqlite3
import subprocess
import time
from pathlib import Path

import msgspec
import numpy as np

from bench.workloads import percentile

_ROOT = Path(__file__).parents[1]
_FLUSHES = 200
_BUSY_LOAD = 0.5


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine at the start of a run."""

    cpu: str
    cores: int
    load: float  # average of the last minute
    python: str
    numpy: str
    sqlite: str
    commit: str
    flush_p50_ms: float  # fdatasync of 4 KiB appended
    flush_p99_ms: float
    calibration_ms: float  # of a fixed piece of work in Python and NumPy

    @property
    def is_busy(self) -> bool:
        """Whether other work would disturb the figures."""
        return self.load > _BUSY_LOAD


def describe(folder: Path) -> Machine:
    """Look at the machine, and measure its yardsticks; flushes on the disk of ``folder``."""
    load = os.getloadavg()[0]
    flushes = sorted(_flush_times(folder))
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 0,
        load=load,
        python=platform.python_version(),
        numpy=np.__version__,
        sqlite=sqlite3.sqlite_version,
        commit=_commit(),
        flush_p50_ms=percentile(flushes, 0.5) * 1e3,
        flush_p99_ms=percentile(flushes, 0.99) * 1e3,
        calibration_ms=calibrate(),
    )


def calibrate() -> float:
    """Return the milliseconds of a fixed piece of work, half Python and half NumPy; the best of seven."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        table: dict[int, int] = {}
        for number in range(60_000):
            table[number & 1023] = table.get(number & 1023, 0) + number
        values = np.arange(10_000, dtype=np.float64)
        for number in range(400):
            np.flatnonzero(values * 1.5 + number > 9_000.0)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def to_text(machine: Machine) -> str:
    """Say it in four lines, and in a fifth if the machine is busy."""
    lines = [
        f"{machine.cpu}, {machine.cores} cores, load {machine.load:.2f}",
        f"Python {machine.python}, NumPy {machine.numpy}, SQLite {machine.sqlite}; commit {machine.commit}",
        f"flush (fdatasync of 4 KiB): p50 {machine.flush_p50_ms:.3f} ms, p99 {machine.flush_p99_ms:.3f} ms",
        f"calibration loop: {machine.calibration_ms:.1f} ms",
    ]
    if machine.is_busy:
        lines.append(f"warning: the load is above {_BUSY_LOAD}: other work runs here, and will be in the figures")
    return "\n".join(lines)


def _flush_times(folder: Path) -> list[float]:
    path = folder / "flushes"
    times = []
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        for _ in range(_FLUSHES):
            os.write(file, bytes(4096))
            start = time.perf_counter()
            os.fdatasync(file)
            times.append(time.perf_counter() - start)
    finally:
        os.close(file)
        path.unlink()
    return times


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _commit() -> str:
    command = ["git", "-c", "safe.directory=*", "describe", "--always", "--dirty", "--abbrev=10"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
