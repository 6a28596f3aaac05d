"""Comparisons of settings: create."""

import math
import time

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.handlers.capacity import read_change
from roost.api.v1.schemas.decisions import ComparisonBody
from roost.api.v1.wire.decode_body import field_problem
from roost.errors import BadSettings
from roost.scheduler.comparison.policy_comparison import RecordQuery, Scenario

# Share of the budget for decisions; the remainder is for the spreads and the response.
_DECIDING_PART = 0.75


def create(call: Call) -> Response:
    """Decide recorded requests again, in their order, under two to four sets of settings; nothing is claimed.

    A set can also add hosts to the fleet, and remove some.

    Returns the figures of each set, the spread of use over the hosts, and the requests with different results; without
    policy roost:all_projects, only those of the project of the client. The results are partial if the budget of a
    request ends. Fails with 400 for invalid settings, or an unknown
    host, rack or zone.
    """
    body = call.body
    assert isinstance(body, ComparisonBody)
    sets: dict[str, Scenario] = {}
    for number, each in enumerate(body.sets):
        if each.name in sets:
            raise field_problem(f"$.sets[{number}].name", f"must be unique, got {each.name!r} again")
        try:
            settings = call.product.override_settings(each.settings) if each.settings else call.product.settings
        except BadSettings as error:
            raise field_problem(f"$.sets[{number}].settings", str(error)) from None
        sets[each.name] = Scenario(settings, read_change(call, each, at=f"$.sets[{number}]"))
    left_s = call.request.until_s - time.perf_counter()
    end_s = time.perf_counter() + _DECIDING_PART * left_s if math.isfinite(left_s) else math.inf
    query = RecordQuery(newest=body.newest, has_hosts=body.hosts, project_id=call.project)
    comparison = call.product.compare(sets, query, is_late=lambda: time.perf_counter() > end_s)
    return json_response(comparison)
