"""The table of ``roost lab fgd`` as text."""

from roost.cli.text.tables import Table, align
from roost.simulator.lab.gpu_arrivals import LOAD_PERCENT
from roost.simulator.lab.gpu_comparison import GpuComparison, PolicyFigures


def to_text(comparison: GpuComparison) -> str:
    """Return the table, with a final newline."""
    heads: tuple[str, ...] = (
        "workload",
        "policy",
        "runs",
        "allocated %",
        "sd",
        "unusable %",
        "sd",
        "refused",
        "largest",
    )
    if comparison.is_expected:
        heads += ("deviation", "deviation", "exact")
    rows: Table = [heads, *(_row(figures, has_expected=comparison.is_expected) for figures in comparison.figures)]
    run_count = sum(figures.runs for figures in comparison.figures)
    lines = [f"GPUs of the fleet at a load of {LOAD_PERCENT} %: mean and standard deviation of each policy's runs"]
    lines += [f"  ({note})" for note in comparison.notes]
    if comparison.is_expected:
        lines.append("  (deviations from the expected results are in percentage points: allocated, then unusable)")
    if comparison.runs_found:
        lines.append(f"  ({comparison.runs_found} of {run_count} runs were finished earlier)")
    return "\n".join([*lines, "", *align(rows, right=range(2, len(heads)))]) + "\n"


def _row(figures: PolicyFigures, *, has_expected: bool) -> tuple[str, ...]:
    cells = (
        figures.workload,
        figures.policy,
        f"{figures.runs:,}",
        f"{figures.allocated_percent:.2f}",
        f"{figures.allocated_sd:.2f}",
        f"{figures.unusable_percent:.2f}",
        f"{figures.unusable_sd:.2f}",
        f"{figures.refused:,.1f}",
        f"{figures.refused_largest:,.1f}",
    )
    if not has_expected:
        return cells
    if figures.allocated_deviation is None or figures.unusable_deviation is None:
        return (*cells, "", "", "not expected")
    exact = "by mean" if figures.is_random else f"{figures.exact_runs} of {figures.expected_runs}"
    return (*cells, f"{figures.allocated_deviation:+.2f}", f"{figures.unusable_deviation:+.2f}", exact)
