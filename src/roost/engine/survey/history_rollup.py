"""The history of a fleet with fewer and longer periods: for older rows, and for a reader.

Rows are kept by the minute for a day, then by ten minutes for a week, then by the hour.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, count

from roost.model.evidence.fleet_history import (
    MINUTE_S,
    ClassAmounts,
    ClassHistory,
    DecisionCounts,
    FleetHistory,
    HistoryRow,
    RefusalHistory,
    add_counts,
    decode_amounts,
    decode_counts,
    encode_counts,
)

_HOUR, _DAY = 60, 24 * 60
# Age in minutes, and the minutes of a period from that age on; the oldest first.
_PERIODS = ((7 * _DAY, _HOUR), (_DAY, 10))
# Lengths of periods for a reader, in minutes; each is a multiple of the stored ones below it or equal to one.
_STEPS = (1, 2, 5, 10, 20, 30, 60, 120, 180, 240, 360, 720, _DAY)
_REASONS_MAX = 12


def period_of(minute: int, *, now: int) -> int:
    """Return the minutes of the period that a row belongs to at its age.

    Args:
        minute: of the row.
        now: the current minute.
    """
    for age, period in _PERIODS:
        if minute < (now - age) // _HOUR * _HOUR:  # Whole hours, so that a period never has two lengths.
            return period
    return 1


def periods_to_merge(keys: Iterable[tuple[int, str]], *, now: int) -> list[tuple[int, int]]:
    """Return the first and last minute of each period whose rows should be one, the oldest first.

    Args:
        keys: minute and part of all rows.
        now: the current minute.
    """
    found = set()
    for minute, part in keys:
        period = period_of(minute, now=now)
        first = minute // period * period
        if period > 1 and (part or minute != first):
            found.add((first, first + period - 1))
    return sorted(found)


def merge_rows(rows: Sequence[HistoryRow], *, minute: int) -> HistoryRow:
    """Return one row for those of a period: the first amounts, and the sum of all counts.

    Args:
        rows: all rows of the period, in order.
        minute: the first of the period.
    """
    amounts = next((row.amounts for row in rows if row.amounts), b"")
    counts = add_counts([decode_counts(row.counts) for row in rows])
    return HistoryRow(minute, "", amounts, encode_counts(counts))


def choose_step(*, since: int, until: int, points: int, now: int) -> int:
    """Return the minutes of a period, so that a span has at most some periods and no period is shorter than a row's.

    Periods begin at multiples of their length, so the first and the last may be outside of the span in part.
    """
    shortest = period_of(since, now=now)
    for step in chain(_STEPS, count(2 * _DAY, _DAY)):
        if step >= shortest and -(-until // step) - since // step <= points:
            return step
    raise AssertionError("a period longer than the span ends it")


def roll_up(
    rows: Sequence[HistoryRow], *, since: int, until: int, step: int, resource_class: str | None, zone: str | None
) -> FleetHistory:
    """Return the history of a span as aligned arrays.

    The amounts of a period are its first known ones.

    Args:
        rows: of the span, in order.
        since, until: first minute, and the minute after the last; multiples of ``step``.
        step: minutes of a period.
        resource_class, zone: only this class or zone; None: all classes, and the sum of all zones.
    """
    starts = range(since, until, step)
    amounts: list[list[ClassAmounts]] = [[] for _ in starts]
    counts: list[list[DecisionCounts]] = [[] for _ in starts]
    for row in rows:
        at = (row.minute - since) // step
        if 0 <= at < len(starts):
            if row.amounts and not amounts[at]:
                amounts[at] = decode_amounts(row.amounts)
            if row.counts:
                counts[at].append(decode_counts(row.counts))
    totals = [add_counts(each) for each in counts]
    return FleetHistory(
        since_s=since * MINUTE_S,
        until_s=until * MINUTE_S,
        step_s=step * MINUTE_S,
        times=[start * MINUTE_S for start in starts],
        zones=sorted({each.zone for found in amounts for each in found}),
        classes=_class_histories(amounts, resource_class=resource_class, zone=zone),
        granted=[total.granted for total in totals],
        failed=[total.failed for total in totals],
        refused=_refusal_histories(totals),
    )


def _class_histories(
    amounts: Sequence[Sequence[ClassAmounts]], *, resource_class: str | None, zone: str | None
) -> list[ClassHistory]:
    found: dict[str, ClassHistory] = {}
    for at, moment in enumerate(amounts):
        for each in moment:
            name = each.resource_class
            if resource_class not in (None, name) or zone not in (None, each.zone):
                continue
            if name not in found:
                unknown: list[list[int | None]] = [[None] * len(amounts) for _ in range(4)]
                capacity, used, stranded, unusable = unknown
                found[name] = ClassHistory(
                    resource_class=name, capacity=capacity, used=used, stranded=stranded, unusable=unusable
                )
            history = found[name]
            for array, amount in (
                (history.capacity, each.capacity),
                (history.used, each.used),
                (history.stranded, each.stranded),
                (history.unusable, each.unusable),
            ):
                array[at] = (array[at] or 0) + amount
    return [found[name] for name in sorted(found)]


def _refusal_histories(totals: Sequence[DecisionCounts]) -> list[RefusalHistory]:
    """Return the most frequent reasons; the remaining ones are one with the rule and reason ``other``."""
    sums: Counter[str] = Counter()
    for total in totals:
        sums.update(total.refused)
    ordered = sorted(sums, key=lambda reason: (-sums[reason], reason))
    shown_count = len(ordered) if len(ordered) <= _REASONS_MAX else _REASONS_MAX - 1
    shown, rest = ordered[:shown_count], ordered[shown_count:]
    histories = []
    for key in shown:
        rule, _, reason = key.partition("/")
        counts = [total.refused.get(key, 0) for total in totals]
        histories.append(RefusalHistory(rule=rule, reason=reason, counts=counts))
    if rest:
        counts = [sum(total.refused.get(key, 0) for key in rest) for total in totals]
        histories.append(RefusalHistory(rule="other", reason="other", counts=counts))
    return histories
