"""Writes the history of the fleet: one row for each minute, beside the thread that decides."""

from collections.abc import Callable, Sequence

from roost.model.evidence.fleet_history import (
    MINUTE_S,
    ClassAmounts,
    DecisionCounts,
    HistoryRow,
    encode_amounts,
    encode_counts,
)
from roost.model.settings.roost_settings import Store as Limits
from roost.observe import fleet_metrics as families
from roost.observe.survey_board import Sample
from roost.store.rules.history_table import HistoryTable
from roost.store.upkeep.stored_history import shorten_history

# Minutes between two deletions of old rows.
_SHORTEN_EVERY = 10


class HistoryWriter:
    """Writes the history of one process: the amounts of its surveys, and its own decisions.

    Args:
        table: the history of the database.
        process: a name for this process that no other process has or had.
        limits: returns the current limits.
        totals: returns the decisions of this process since its start.
    """

    def __init__(
        self, table: HistoryTable, *, process: str, limits: Callable[[], Limits], totals: Callable[[], DecisionCounts]
    ) -> None:
        self._table, self._process = table, process
        self._limits, self._totals = limits, totals
        self._written = totals()  # the decisions in the rows so far
        self._minute: int | None = None  # of the last call
        self._amounts: list[ClassAmounts] = []  # of this minute; empty: another process surveys, or none did yet
        self._shortened = 0  # minute of the last deletion of old rows

    def keep(self, samples: Sequence[Sample]) -> None:
        """Keep the first survey of a minute for its row."""
        if not self._amounts:
            self._amounts = amounts_of(samples)

    def write(self, *, now_s: float, is_end: bool = False) -> None:
        """Write the row of the last minute once it is over.

        After an error, the next call tries again with all decisions since.

        Args:
            now_s: seconds since the epoch.
            is_end: whether the process ends, so that the present minute is written, too.

        Raises:
            Unavailable: the database cannot be written.
        """
        minute = int(now_s // MINUTE_S)
        last, self._minute = self._minute, minute
        if last is None or (last == minute and not is_end):
            return
        limits = self._limits()
        if not limits.history_days:
            self._amounts, self._written = [], self._totals()
            return
        amounts, self._amounts = self._amounts, []
        if amounts:
            self._table.insert(HistoryRow(last, "", encode_amounts(amounts), b""))
        totals = self._totals()
        counts = _subtract(totals, self._written)
        if counts:
            self._table.insert(HistoryRow(last, self._process, b"", encode_counts(counts)))
            self._written = totals
        if minute >= self._shortened + _SHORTEN_EVERY and not is_end:
            self._shortened = minute
            max_bytes = limits.history_max_bytes
            shorten_history(self._table, now=minute, days=limits.history_days, max_bytes=max_bytes)


def amounts_of(samples: Sequence[Sample]) -> list[ClassAmounts]:
    """Return the amounts of a survey of the fleet by class and zone, from its metrics."""
    values: dict[tuple[str, str], dict[str, int]] = {}
    names = {families.CAPACITY.name: "capacity", families.USED.name: "used"}
    for each in samples:
        if each.family == families.STRANDED.name:
            name = "unusable" if each.labels[2] == "host" else "stranded"
        elif each.family in names:
            name = names[each.family]
        else:
            continue
        values.setdefault((each.labels[0], each.labels[1]), {})[name] = int(each.value)
    return [
        ClassAmounts(
            resource_class=resource_class,
            zone=zone,
            capacity=amounts.get("capacity", 0),
            used=amounts.get("used", 0),
            stranded=amounts.get("stranded", 0),
            unusable=amounts.get("unusable", 0),
        )
        for (resource_class, zone), amounts in sorted(values.items())
    ]


def _subtract(totals: DecisionCounts, written: DecisionCounts) -> DecisionCounts:
    refused = {reason: count - written.refused.get(reason, 0) for reason, count in totals.refused.items()}
    return DecisionCounts(
        totals.granted - written.granted,
        totals.failed - written.failed,
        {reason: count for reason, count in refused.items() if count},
    )
