"""The table: one line a figure, against its budget."""

from statistics import median

import msgspec

from bench.machine import Machine
from bench.workloads import Figures, Workload


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a workload over its repetitions."""

    row: str
    figure: str
    best: float
    median: float
    budget: float | None = None

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return self.figure.endswith("_per_s")

    @property
    def ratio(self) -> float | None:
        """The median, in budgets."""
        return None if self.budget is None else self.median / self.budget

    @property
    def verdict(self) -> str:
        """Say whether the budget is met: yes, at best (by the best repetition alone), or no."""
        if self.budget is None:
            return ""
        if self._meets(self.median):
            return "yes"
        return "at best" if self._meets(self.best) else "no"

    def _meets(self, value: float) -> bool:
        assert self.budget is not None
        return value >= self.budget if self.is_rate else value <= self.budget


def lines_of(workload: Workload, repetitions: list[Figures], machine: Machine) -> list[Line]:
    """Return one line a figure; the machine's flush is added to budgets that allow one."""
    flush = {"p50_ms": machine.flush_p50_ms, "p99_ms": machine.flush_p99_ms}
    lines = []
    for figure in repetitions[0]:
        values = [one[figure] for one in repetitions if figure in one]
        budget = workload.budget.get(figure)
        if budget is not None:
            budget += workload.flushes * flush.get(figure, 0.0)
        best = max(values) if figure.endswith("_per_s") else min(values)
        lines.append(Line(row=workload.name, figure=figure, best=best, median=median(values), budget=budget))
    missing = workload.budget.keys() - repetitions[0].keys()
    assert not missing, f"{workload.name} has a budget for what is not measured: {missing}"
    return lines


HEADER = f"{'row':24} {'figure':22} {'best':>11} {'median':>11} {'budget':>11} {'ratio':>6} met"


def to_text(line: Line) -> str:
    """Return one line of the table."""
    budget = "" if line.budget is None else _number(line.budget)
    ratio = "" if line.ratio is None else f"{line.ratio:.2f}"
    cells = f"{_number(line.best):>11} {_number(line.median):>11} {budget:>11} {ratio:>6}"
    return f"{line.row:24} {line.figure:22} {cells} {line.verdict}".rstrip()


def comparison(lines: list[Line], others: list[Line], *, speed: float) -> list[str]:
    """Compare with another run, figure by figure.

    Args:
        lines, others: of this run and of the other.
        speed: calibration time here over calibration time there; times are divided by it, rates multiplied.

    Returns:
        One text a figure that both have: this one in units of the other, so that less is better for times and
        more for rates.
    """
    known = {(other.row, other.figure): other for other in others}
    texts = []
    for line in lines:
        other = known.get((line.row, line.figure))
        if other is None or not other.median:
            continue
        is_time = line.figure.endswith(("_ms", "_us", "_s")) and not line.is_rate
        scale = speed if line.is_rate else 1 / speed if is_time else 1.0
        ratios = f"{line.best / other.best * scale:>8.2f} {line.median / other.median * scale:>8.2f}"
        texts.append(f"{line.row:24} {line.figure:22} {ratios}")
    return texts


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.3f}"
