"""The statement that changes the amounts in use by a batch, and its guard.

It has no list of rows to join: MariaDB would copy the list twice, store each new row in a third table, and find each
row of the inventory twice. Instead, ``INTERVAL`` finds the position of an id in a sorted list, and ``ELT`` takes the
amount at this position from a second list.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from roost.model.writes import CLASS_MASK, GENERATION_SLOT
from roost.store.rules.batch import NO_MINIMUM

# Rows of one statement. From 1,000 on, the server may turn the list of ids into a table, and join it in any order.
_ROWS_MAX = 900
# Rows of inventories are locked in the order of their ids, as the server reads ranges of the primary key.
# An expression in SET is evaluated once for each row, in the order in which it is written, so ``@passed`` counts the
# rows that pass. ``IS NOT NULL`` is always true: it only makes the assignment a condition. During a statement, a
# variable keeps the type that it had before, so ``_START`` makes them integers.
_START = "SET @added = 0, @passed = 0, @at = 0"
_UPDATE = """
UPDATE inventory FORCE INDEX (PRIMARY)
SET used = used + IF((@added := CAST(ELT(INTERVAL(id, {ids}), {added}) AS SIGNED)) IS NOT NULL
                     AND {guard} AND (@passed := @passed + 1), @added, 0)
WHERE id IN ({ids})"""
_GUARD = f"""
(@added < 0 OR id & {CLASS_MASK} = {GENERATION_SLOT}
 OR used + @added <= (total - reserved) * allocation_ratio
    AND @added BETWEEN min_unit AND max_unit AND @added % step_size = 0)"""
# Of rows with several claims, or with claims and releases. The peak counts rather than the sum: if a release follows a
# claim, the claim must fit before the release. ``> 0`` is always true.
_BOUNDS = """
IF(id IN ({ids}),
   (@at := INTERVAL(id, {ids})) > 0
   AND used + CAST(ELT(@at, {peaks}) AS SIGNED) <= (total - reserved) * allocation_ratio
   AND CAST(ELT(@at, {minima}) AS SIGNED) >= min_unit
   AND CAST(ELT(@at, {maxima}) AS SIGNED) <= max_unit
   AND CAST(ELT(@at, {divisors}) AS SIGNED) % step_size = 0,
   {guard})"""


class StockUpdate(NamedTuple):
    """A part of the update: its statements, and the condition that all rows passed."""

    statements: tuple[str, str]
    condition: str


def stock_updates(stocks: dict[int, list[int]]) -> Iterator[StockUpdate]:
    """Yield the statements that add amounts to ``used``, and their guards.

    Args:
        stocks: see ``Batch.stocks``.
    """
    rows = sorted(stocks.items())
    for at in range(0, len(rows), _ROWS_MAX):
        part = rows[at : at + _ROWS_MAX]
        text = _UPDATE.format(
            ids=_join([number for number, _ in part]),
            added=_join([amounts[0] for _, amounts in part]),
            guard=_guard_of(part),
        )
        yield StockUpdate((_START, text), f"ROW_COUNT() = {len(part)} AND @passed = {len(part)}")


def _guard_of(rows: Sequence[tuple[int, list[int]]]) -> str:
    bounded = [row for row in rows if not _fits_plain_guard(*row)]
    if not bounded:
        return _GUARD
    ids, bounds = [number for number, _ in bounded], [amounts for _, amounts in bounded]
    peaks, minima, maxima, divisors = (_join(map(itemgetter(at), bounds)) for at in range(1, 5))
    return _BOUNDS.format(ids=_join(ids), peaks=peaks, minima=minima, maxima=maxima, divisors=divisors, guard=_GUARD)


def _fits_plain_guard(number: int, amounts: list[int]) -> bool:
    """Return whether ``_GUARD`` is enough: a row has one claim, or only releases, or is a generation."""
    added, peak, minimum, maximum, divisor = amounts
    is_generation = number & CLASS_MASK == GENERATION_SLOT
    if minimum == NO_MINIMUM:
        return added < 0 or is_generation
    return added > 0 and not is_generation and added == peak == minimum == maximum == divisor


def _join(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
