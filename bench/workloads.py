"""Workloads as data: what bench/workloads.toml may say."""

import tomllib
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("workloads.toml")

# One repetition gives these: figure -> value. The end of a name says its unit.
Figures = dict[str, float]


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One workload; bench/workloads.toml says what the fields mean."""

    name: str
    kind: str
    about: str
    hosts: int = 0
    fleet: str = "mixed"
    shapes: int = 1
    group: int = 64
    count: int = 1
    rate: float = 0.0
    requests: int = 0
    store: str = "sqlite-full"
    writers: int = 0
    options: dict[str, float] = {}
    repeat: int = 3
    flushes: int = 0
    budget: Figures = {}
    small: dict[str, int] = {}

    @property
    def warm_up(self) -> int:
        """How many requests go before those that are measured."""
        return max(self.requests // 10, 2 * self.shapes)


def load(*, small: bool = False) -> list[Workload]:
    """Return all workloads; small ones take a second together and measure nothing."""
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))["workload"]
    if small:
        tables = [table | {"repeat": 1} | table.get("small", {}) for table in tables]
    return msgspec.convert(tables, list[Workload])


def percentile(values: list[float], share: float) -> float:
    """Return the value that ``share`` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def in_ms(seconds: list[float], prefix: str = "") -> Figures:
    """Return the median and the 99th percentile of durations, in milliseconds."""
    return {
        f"{prefix}p50_ms": percentile(seconds, 0.5) * 1e3,
        f"{prefix}p99_ms": percentile(seconds, 0.99) * 1e3,
    }
