"""The history of the fleet."""

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.schemas.status import HistoryQuery
from roost.api.v1.wire.decode_body import field_problem
from roost.engine.survey.history_rollup import choose_step, roll_up
from roost.model.evidence.fleet_history import MINUTE_S

_DAY_S = 86_400.0


def show(call: Call) -> Response:
    """Show amounts by resource class, and decisions by outcome and reason, over time.

    The arrays are aligned: each has one entry per period. The amounts of a period are its first known ones; null means
    that no server was running. Counts are sums. Periods are whole minutes, and longer for older parts of the history.
    """
    call.require_thread()
    query = call.query
    assert isinstance(query, HistoryQuery)
    now_s = call.agents.reader(call.current).now_s()
    until_s = now_s if query.until is None else min(query.until, now_s)
    since_s = until_s - _DAY_S if query.since is None else query.since
    if until_s < 0:
        raise field_problem("?until", "must be 0 or more")
    if not 0 <= since_s < until_s:
        raise field_problem("?since", "must be before the end and not after now")
    now, first, last = (int(moment_s // MINUTE_S) for moment_s in (now_s, since_s, until_s))
    step = choose_step(since=first, until=last + 1, points=query.points, now=now)
    since, until = first // step * step, (last // step + 1) * step
    rows = call.product.history(since, until - 1)
    return json_response(
        roll_up(rows, since=since, until=until, step=step, resource_class=query.resource_class, zone=query.zone)
    )
