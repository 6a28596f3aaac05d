"""The refused hosts of each check of a shape, with reasons."""

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import NO_INVENTORY, Rows
from roost.engine.feasibility.feasibility import AmountCheck, Check, GroupCheck
from roost.model.documents.answer import AnswerStage, RefusedHost
from roost.model.names import amount_text
from roost.scheduler.shape.shape import Shape


def find_stages(state: State, shape: Shape) -> tuple[AnswerStage, ...]:
    """Find the stages of a shape in the current state, with all refused hosts."""
    hosts = state.hosts
    remaining = hosts.alive.view.copy()
    stages = []
    for at, (mask, (rule, reason)) in enumerate(zip(shape.verdicts.masks(), shape.evidence.checks.rules, strict=True)):
        check = shape.fit.checks[at] if at < len(shape.fit.checks) else None
        before = int(np.count_nonzero(remaining))
        rows = np.flatnonzero(remaining & ~mask)
        refused = tuple(
            RefusedHost(host=hosts.names[row], nodename=hosts.nodes[row], reason=shortfall or host_reason or reason)
            for row, shortfall, host_reason in zip(
                rows.tolist(),
                _describe_shortfalls(state, check, rows),
                shape.verdicts.host_reasons(at, rows),
                strict=True,
            )
        )
        remaining &= mask
        stages.append(
            AnswerStage(rule=rule, reason=reason, before=before, after=before - len(refused), refused=refused)
        )
    return tuple(stages)


def _describe_shortfalls(state: State, check: Check | None, rows: Rows) -> list[str]:
    """Describe the free amounts of refused hosts, such as "has 2 of 4 VCPU"; empty for checks without an amount."""
    name_of = state.class_ids.name_of
    if isinstance(check, AmountCheck):
        return [
            _describe_free(name_of(check.class_id), free_amount, check.amount)
            for free_amount in check.largest_free(state)[rows].tolist()
        ]
    if isinstance(check, GroupCheck) and check.group_count > 1:
        counts = check.count_by_host(state)[rows].tolist()
        return [f"has room for {count:,} of {check.group_count:,} groups" for count in counts]
    if isinstance(check, GroupCheck) and len(check.amounts) == 1:
        ((class_id, amount),) = check.amounts
        free = state.inventory(class_id).free.each
        free_amounts = [
            max((free[each] for each in check.find_rows(row)), default=NO_INVENTORY) for row in rows.tolist()
        ]
        return [_describe_free(name_of(class_id), free_amount, amount) for free_amount in free_amounts]
    return [""] * len(rows)


def _describe_free(name: str, free: int, amount: int) -> str:
    """Describe the free amount on the best provider of a host; ``NO_INVENTORY``: none offers the class."""
    if free == NO_INVENTORY:
        return f"offers no {name}"
    required = amount_text(name, amount)
    if free >= amount:
        return f"has {free:,} of {required}, but its unit bounds do not allow that amount"
    return f"has {max(free, 0):,} of {required}"
