"""Which hosts each check of a shape refused, and why each of them."""

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import NOTHING, Rows
from roost.engine.feasibility.feasibility import Amount, Check, Family
from roost.model.documents.answer import AnswerStage, RefusedHost
from roost.model.names import amount_text
from roost.scheduler.pipeline.shape import Shape


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
            RefusedHost(host=hosts.names[row], nodename=hosts.nodes[row], reason=short or told or reason)
            for row, short, told in zip(
                rows.tolist(), _shortfalls(state, check, rows), shape.host_reasons(at, rows), strict=True
            )
        )
        left &= mask
        stages.append(
            AnswerStage(rule=rule, reason=reason, before=before, after=before - len(refused), refused=refused)
        )
    return tuple(stages)


def _shortfalls(state: State, check: Check | None, rows: Rows) -> list[str]:
    """Say how much refused hosts have of what a check wants, without a subject; nothing where that is no amount."""
    name_of = state.class_ids.name_of
    if isinstance(check, Amount):
        return [_has(name_of(check.class_id), most, check.amount) for most in check.most(state)[rows].tolist()]
    if isinstance(check, Family) and check.wanted > 1:
        counts = check.count(state)[rows].tolist()
        return [f"has room for {count:,} of {check.wanted:,} groups" for count in counts]
    if isinstance(check, Family) and len(check.amounts) == 1:
        ((class_id, amount),) = check.amounts
        free = state.inventory(class_id).free.each
        found = [max((free[each] for each in check.rows_on(row)), default=NOTHING) for row in rows.tolist()]
        return [_has(name_of(class_id), most, amount) for most in found]
    return [""] * len(rows)


def _has(name: str, most: int, amount: int) -> str:
    """Say what is free on the best provider of a host; ``NOTHING``: none offers the class."""
    if most == NOTHING:
        return f"offers no {name}"
    wanted = amount_text(name, amount)
    if most >= amount:
        return f"has {most:,} of {wanted}, but its unit bounds do not allow that amount"
    return f"has {max(most, 0):,} of {wanted}"
