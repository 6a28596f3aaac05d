"""Which hosts each check of a shape refused, and why each of them."""

import numpy as np

from roost.engine.feasible import Amount, Family, Label
from roost.engine.state import State
from roost.model.answer import AnswerStage, RefusedHost
from roost.model.names import amount_text
from roost.scheduler.pipeline import Shape


def stages_of(state: State, shape: Shape) -> tuple[AnswerStage, ...]:
    """Return the stages of a shape as the state is now, with every host that each refused."""
    hosts = state.hosts
    left = hosts.alive.view.copy()
    stages = []
    for at, (mask, (rule, reason)) in enumerate(zip(shape.verdicts(), shape.checks.rules, strict=True)):
        check = shape.fit.checks[at] if at < len(shape.fit.checks) else None
        before = int(np.count_nonzero(left))
        rows = np.flatnonzero(left & ~mask)
        refused = tuple(
            RefusedHost(
                host=hosts.names[row],
                nodename=hosts.nodes[row],
                reason=shortfall(state, check, row) or told or reason,
            )
            for row, told in zip(rows.tolist(), shape.tell(at, rows), strict=True)
        )
        left &= mask
        stages.append(
            AnswerStage(rule=rule, reason=reason, before=before, after=before - len(refused), refused=refused)
        )
    return tuple(stages)


def shortfall(state: State, check: Label | Amount | Family | None, row: int) -> str:
    """Say how much a refused host has of what a check wants, without a subject; nothing where that is no amount."""
    if isinstance(check, Amount):
        return _of_amount(state, check, row)
    if isinstance(check, Family):
        if check.wanted > 1:
            return f"has room for {check.count(state, row):,} of {check.wanted:,} groups"
        return _of_family(state, check, row)
    return ""


def _of_amount(state: State, check: Amount, row: int) -> str:
    name = state.class_ids.name_of(check.class_id)
    columns = state.inventory(check.class_id)
    rows = state.providers.rows_of_tree(state.hosts.provider_row.each[row])
    rows = rows + [lender for lender, served in check.lenders if served[row]]
    free = [columns.free.each[each] for each in rows if each in columns.holders]
    return _has(name, free, check.amount)


def _of_family(state: State, check: Family, row: int) -> str:
    if len(check.amounts) > 1:
        return ""
    class_id, amount = check.amounts[0]
    columns = state.inventory(class_id)
    return _has(state.class_ids.name_of(class_id), [columns.free.each[each] for each in check.rows_on(row)], amount)


def _has(name: str, free: list[int], amount: int) -> str:
    """Say what is free on the best provider of some."""
    if not free:
        return f"offers no {name}"
    most = max(free)
    wanted = amount_text(name, amount)
    if most >= amount:
        return f"has {most:,} of {wanted}, but its unit bounds do not allow that amount"
    return f"has {max(most, 0):,} of {wanted}"
