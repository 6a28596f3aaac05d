"""A comparison of policies as text."""

from roost.cli.text.tables import Table, align
from roost.simulator.compare import Comparison, Spread, Unit


def to_text(comparison: Comparison) -> str:
    """Return the comparison as text, with a final newline."""
    names = [policy.name for policy in comparison.policies]
    rows: Table = [("", *names)]
    for figure in comparison.figures:
        cells = [
            _cell(spread, figure.unit) + (" *" if figure.best == name else "")
            for name, spread in zip(names, figure.spreads, strict=True)
        ]
        rows.append((figure.name, *cells))
    if any(figure.best for figure in comparison.figures):
        # Pad unmarked cells, so that marks do not shift the numbers.
        rows = [(row[0], *(cell if cell.endswith(" *") else f"{cell}  " for cell in row[1:])) for row in rows]
    lines = [f"comparison of {comparison.workload}", *(f"  ({note})" for note in comparison.notes)]
    lines += [f"  ({note})" for note in _remarks(comparison)]
    return "\n".join([*lines, "", *align(rows, right=range(1, len(names) + 1))]) + "\n"


def _remarks(comparison: Comparison) -> list[str]:
    count = len(comparison.seeds)
    seeds = ", ".join(str(seed) for seed in comparison.seeds if seed is not None)
    remarks = []
    if count > 1:
        remarks.append(f"mean and minimum..maximum of {count} seeds: {seeds}")
    elif seeds:
        remarks.append(f"seed {seeds}")
    if any(figure.best for figure in comparison.figures):
        remarks.append("* is better than the others" + (", with every seed" if count > 1 else ""))
    if comparison.jobs > 1:
        remarks.append(f"up to {comparison.jobs} runs at a time, which disturb each other's durations")
    if comparison.runs_found:
        run_count = len(comparison.policies) * count
        remarks.append(f"{comparison.runs_found} of {run_count} runs were finished earlier")
    return remarks


def _cell(spread: Spread, unit: Unit) -> str:
    mean, least, most = (_number(value, unit) for value in (spread.mean, spread.least, spread.most))
    sign = "%" if unit == "share" else ""
    return f"{mean}{sign}" if least == most else f"{mean}{sign} ({least}..{most})"


def _number(value: float, unit: Unit) -> str:
    if unit == "share":
        return f"{value * 100:.1f}"
    return f"{value:,.0f}" if unit != "count" or float(value).is_integer() else f"{value:,.1f}"
