"""Checks whether an instance's host accepts a new image, with the rules that Nova runs in this case."""

from collections.abc import Sequence

import msgspec
import numpy as np

from roost.engine.columns.state import State
from roost.model.request import Request
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Filter, Judge
from roost.scheduler.framework.spec import Spec

_HINT = "_nova_check_type"


def mark_rebuild(request: Request) -> Request:
    """Return a request marked as the check before a rebuild; pre-filters and rules that choose hosts ignore it."""
    return msgspec.structs.replace(request, hints={**request.hints, _HINT: ["rebuild"]})


def rebuild_refusal(filters: Sequence[Filter], request: Request, *, state: State, node: str, now_s: float) -> str:
    """Return the reason why an instance cannot be rebuilt on its host; empty if it can.

    There is no search and no claim: the instance keeps its allocations.

    Args:
        filters: the enabled filters; only those for rebuilds judge.
        request: the instance after the rebuild.
        node: its present node.
        now_s: seconds since the epoch.

    Raises:
        BadRequest: a rule rejects the request as invalid.

    Source:
        nova/conductor/manager.py, rebuild_instance; nova/scheduler/manager.py, select_destinations.
    """
    hosts = state.hosts
    row = next((row for row, name in enumerate(hosts.nodes) if name == node and hosts.alive.each[row]), None)
    if row is None:
        return f"{node} no longer exists"
    spec = Spec(mark_rebuild(request), now_s=now_s)
    view = HostView(state, np.array([row]))
    for judge in map(Judge, filters):
        if not judge.run_on_rebuild or not judge.rule.concerns(spec):
            continue
        if judge.request_check is not None:
            judge.request_check.check(spec)
        if not judge.rule.keep(view, spec)[0]:
            return f"{node}: {judge.name}: {judge.rule.reason(spec)}"
    return ""
