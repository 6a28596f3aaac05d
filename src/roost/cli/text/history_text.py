"""A comparison of settings over recorded requests, as text."""

from collections.abc import Callable

from roost.cli.text.plain_text import escape_text, format_time
from roost.cli.text.tables import Fit, Table, align
from roost.model.evidence.comparison import ComparedDecision, Comparison, Result, SettingsResult

_SHOWN = 20  # decisions with different results


def to_text(comparison: Comparison, *, source: str) -> list[str]:
    """Return the lines of a comparison.

    Args:
        source: the option that names the database, for a command that explains a decision.
    """
    lines = [f"{comparison.requests:,} recorded requests and {comparison.departures:,} departures, decided again"]
    if comparison.requests:
        lines.append(f"from {format_time(comparison.since_s)} to {format_time(comparison.until_s)}")
    lines += [escape_text(f"  ({note})") for note in comparison.notes]
    lines += ["", *align(_figures(comparison), right=range(1, len(comparison.sets) + 2))]
    if not comparison.requests:
        return lines
    names = "the record" if len(comparison.sets) == 1 else "each other"
    outcomes = f"{comparison.different_outcomes:,} of them in the outcome"
    lines += ["", f"{comparison.different:,} requests differ from {names}, {outcomes}"]
    # Other outcomes first; the sort keeps the order of times.
    shown = sorted(comparison.decisions, key=_has_one_outcome)[:_SHOWN]
    if shown:
        heads = ("time", "decision", "flavor", "recorded", *(each.name for each in comparison.sets))
        fits: list[Fit] = ["keep", "keep", "text", *(["prose"] * (len(comparison.sets) + 1))]  # type: ignore[list-item]
        lines += align([heads, *map(_decision, shown)], fits=fits, right=())
        if comparison.different > len(shown):
            lines.append(f"  … and {comparison.different - len(shown):,} more: --json has up to 200")
        lines += ["", escape_text(f"explain one: roost why {shown[0].uuid} {source}")]
    return lines


def _figures(comparison: Comparison) -> Table:
    recorded, sets = comparison.recorded, comparison.sets
    rows: Table = [("", "recorded", *(each.name for each in sets))]

    def add(name: str, value: Callable[[SettingsResult], int], stored: int | None) -> None:
        rows.append((name, "" if stored is None else f"{stored:,}", *(f"{value(each):,}" for each in sets)))

    add("granted", lambda each: each.granted, recorded.granted)
    add("refused", lambda each: each.refused, recorded.refused)
    if any(each.failed for each in sets):
        add("failed", lambda each: each.failed, None)
    add("instances placed", lambda each: each.instances, recorded.instances)
    add("other result than recorded", lambda each: each.differs_from_recorded, None)
    add("hosts", lambda each: each.hosts, None)
    add("hosts in use at the end", lambda each: each.hosts_used, None)
    if any(each.lost for each in sets):
        add("consumers lost with their hosts", lambda each: each.lost, None)
    names = dict.fromkeys(spread.resource_class for each in sets for spread in each.classes)
    for name in names:
        spreads = [next((one for one in each.classes if one.resource_class == name), None) for each in sets]
        used = (f"{100 * one.used / one.capacity:.1f}%" if one and one.capacity else "" for one in spreads)
        rows.append((f"{name}, used at the end", "", *used))
        deviations = (f"{100 * one.deviation:.1f}%" if one else "" for one in spreads)
        rows.append((f"{name}, deviation of hosts", "", *deviations))
    return rows


def _has_one_outcome(row: ComparedDecision) -> bool:
    return len({each.outcome for each in (row.recorded, *row.results)}) == 1


def _decision(row: ComparedDecision) -> tuple[str, ...]:
    flavor = row.flavor or "-"
    results = (_result(each) for each in (row.recorded, *row.results))
    return (
        format_time(row.decided_at_s),
        row.uuid,
        flavor if row.count == 1 else f"{row.count} {flavor}",
        *results,
    )


def _result(result: Result) -> str:
    if result.outcome == "granted":
        return ", ".join(result.hosts)
    return f"{result.outcome}: {result.reason}"
