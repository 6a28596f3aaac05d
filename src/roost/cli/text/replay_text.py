"""The report of a replay as text."""

from roost.cli.text.reason_words import reason_words
from roost.cli.text.tables import Table, align
from roost.simulator.report import ClassUse, RefusedReason, ReplayReport

_REASONS_SHOWN = 10


def to_text(report: ReplayReport) -> str:
    """Return the report as text, with a final newline."""
    rows: Table = [
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
        rows.append(("GPU fragmentation", share, "of all GPUs, free but unusable for expected requests"))
    parts = [f"replay of {report.workload}"]
    parts += [f"  ({note})" for note in report.notes]
    parts += ["", *align(rows, right={1})]
    if report.refused_reasons:
        parts += ["", "refused", *_reasons(report.refused_reasons)]
    if report.classes:
        parts += ["", *_classes(report.classes)]
    return "\n".join(parts) + "\n"


def _reasons(reasons: list[RefusedReason]) -> list[str]:
    rows: Table = [(f"{entry.count:,}", reason_words(entry.reason)) for entry in reasons[:_REASONS_SHOWN]]
    rest = reasons[_REASONS_SHOWN:]
    if rest:
        rows.append(
            (
                f"{sum(entry.count for entry in rest):,}",
                f"for {len(rest):,} other reason{'' if len(rest) == 1 else 's'}",
            )
        )
    return align(rows, right={0})


def _classes(classes: list[ClassUse]) -> list[str]:
    rows: Table = [("class", "capacity", "used at the end", "", "peak", "", "free in pieces", "below")]
    for use in classes:
        stranded = "-" if use.stranded_share is None else f"{use.stranded_share:.1%}"
        rows.append(
            (
                use.resource_class,
                f"{use.capacity:,}",
                f"{use.used:,}",
                _percent(use.used, use.capacity),
                f"{use.peak:,}",
                _percent(use.peak, use.capacity),
                stranded,
                "-" if use.typical is None else f"{use.typical:,}",
            )
        )
    return align(rows, right=range(1, 8))


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"
