"""Whether the host of an instance may give it another image: the rules that Nova asks then, and no others."""

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
    """Return a request that is judged where its instance is: no pre-filter and no rule that chooses hosts has a say."""
    return msgspec.structs.replace(request, hints={**request.hints, _HINT: ["rebuild"]})


def rebuild_refusal(filters: Sequence[Filter], request: Request, *, state: State, node: str, now_s: float) -> str:
    """Say why an instance may not be rebuilt where it is; empty: it may.

    Nothing is asked of Placement and nothing is claimed: what the instance holds stays as it is.

    Args:
        filters: the enabled ones, of which those judge that run on rebuilds.
        request: that would build the instance as it is to be.
        node: that it is on.
        now_s: seconds since the epoch.

    Raises:
        BadRequest: a rule cannot understand the request.

    Source:
        nova/conductor/manager.py, rebuild_instance; nova/scheduler/manager.py, select_destinations.
    """
    hosts = state.hosts
    row = next((row for row, name in enumerate(hosts.nodes) if name == node and hosts.alive.each[row]), None)
    if row is None:
        return f"{node} is not there any more"
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
