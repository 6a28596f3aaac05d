"""The first candidate of a host without a search, where counting proves that one exists."""

from roost.engine.candidates.provider_order import ProviderOrder
from roost.engine.columns.state import State
from roost.engine.feasibility.feasibility import AmountCheck, Feasibility, GroupCheck

Take = tuple[int, int, int]  # provider row, class id, amount


def first_fit(
    state: State, fit: Feasibility, host: int, *, provider_order: ProviderOrder | None = None
) -> list[Take] | None:
    """Choose the takes of a request on a host: each class and group from the first provider with room.

    Hosts outside ``Feasibility.undecided`` need no search: groups with different needs request different classes, and
    all eligible providers have the right labels, so the choices for different groups never conflict.

    Args:
        host: row of a host that passes every check of ``fit``.
        provider_order: the preference among providers; None: row order.

    Returns:
        One take per provider and class; None if only a search can decide.
    """
    if fit.shares or fit.compiled is None or fit.undecided.item(host):
        return None
    rows = state.providers.rows_of_tree(state.hosts.provider_row.each[host])
    takes: list[Take] = []
    for check in fit.checks:
        if isinstance(check, AmountCheck):
            columns = state.classes[check.class_id]
            ordered = rows
            if provider_order is not None:
                ordered = provider_order.sort(((check.class_id, check.amount),), list(rows))
            row = next((row for row in ordered if columns.can_take(row, check.amount)), None)
            if row is None:
                return None
            takes.append((row, check.class_id, check.amount))
        elif isinstance(check, GroupCheck):
            served = _fit_groups(state, check, host, provider_order=provider_order)
            if served is None:
                return None
            takes.extend(served)
    return takes


def _fit_groups(
    state: State, family: GroupCheck, host: int, *, provider_order: ProviderOrder | None
) -> list[Take] | None:
    """Choose takes for all groups of a check, each on a provider of its own."""
    if not family.is_isolated:
        return None
    takes: list[Take] = []
    left, classes = family.group_count, state.classes
    rows = family.find_rows(host)
    if provider_order is not None:
        rows = provider_order.sort(family.amounts, rows)
    for row in rows:
        if all(classes[class_id].free.each[row] >= amount for class_id, amount in family.amounts):
            takes.extend((row, class_id, amount) for class_id, amount in family.amounts)
            left -= 1
            if not left:
                return takes
    return None
