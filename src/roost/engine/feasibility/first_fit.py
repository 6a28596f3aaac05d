"""The first candidate of a host without a search, where counting proves that one exists."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from roost.engine.candidates.provider_order import ProviderOrder
from roost.engine.candidates.walk import Mapping, Take
from roost.engine.columns.state import State
from roost.engine.feasibility.feasibility import AmountCheck, Feasibility, GroupCheck


class FirstFit(NamedTuple):
    """The first candidate of a host."""

    takes: list[Take]  # one per provider and class, in the order of the checks
    mappings: tuple[Mapping, ...]  # in the order of the query's groups


def first_fit(
    state: State, fit: Feasibility, host: int, *, provider_order: ProviderOrder | None = None
) -> FirstFit | None:
    """Choose the providers of a request on a host: for each class and group the first one with room.

    Hosts outside ``Feasibility.undecided`` need no search: groups with different needs request different classes, and
    all eligible providers have the right labels, so the choices for different groups never conflict.

    Args:
        host: row of a host that passes every check of ``fit``.
        provider_order: the preference among providers; None: row order.

    Returns:
        The candidate that a search would find first; None if only a search can decide.
    """
    if fit.shares or fit.compiled is None or fit.undecided.item(host):
        return None
    rows = state.providers.rows_of_tree(state.hosts.provider_row.each[host])
    takes: list[Take] = []
    rows_of: dict[str, set[int]] = {}  # suffix of a group -> its providers
    for check in fit.checks:
        if isinstance(check, AmountCheck):
            columns = state.classes[check.class_id]
            free, amount = columns.free.each, check.amount
            fitting = [row for row in rows if free[row] >= amount]
            if not columns.plain_units:
                fitting = [row for row in fitting if columns.can_take(row, amount)]
            if not fitting:
                return None
            if provider_order is not None and len(fitting) > 1:
                fitting = provider_order.sort(((check.class_id, check.amount),), fitting)
            row = fitting[0]
            takes.append((row, check.class_id, check.amount))
            rows_of.setdefault("", set()).add(row)
        elif isinstance(check, GroupCheck):
            served = _fit_groups(state, check, host, provider_order=provider_order)
            if served is None:
                return None
            rows_of.update(zip(check.suffixes, ({row} for row in served), strict=True))
            takes.extend((row, class_id, amount) for row in served for class_id, amount in check.amounts)
    if len(rows_of) < len(fit.compiled.suffixes):
        return None  # A group without resources needs a search.
    return FirstFit(takes, tuple((suffix, tuple(sorted(rows_of[suffix]))) for suffix in fit.compiled.suffixes))


def _fit_groups(
    state: State, family: GroupCheck, host: int, *, provider_order: ProviderOrder | None
) -> list[int] | None:
    """Choose the providers for all groups of a check, each for itself."""
    if not family.is_isolated:
        return None
    classes = state.classes
    fitting: Iterator[int] = (
        row
        for row in family.find_rows(host)
        if all(classes[class_id].free.each[row] >= amount for class_id, amount in family.amounts)
    )
    if provider_order is not None:
        fitting = iter(provider_order.sort(family.amounts, list(fitting)))
    served = list(islice(fitting, family.group_count))
    return served if len(served) == family.group_count else None
