"""The allocation ratios of an aggregate's hosts."""

from collections.abc import Mapping

import msgspec

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.schemas.aggregates import HostRatios, RatiosBody, RatiosResult, ShownRatio
from roost.api.v1.wire.decode_body import field_problem
from roost.engine.columns.state import State
from roost.errors import Conflict
from roost.fleet import aggregate_writes
from roost.fleet.host_writes import writes_of_facts
from roost.model.writes import Write
from roost.placement.write_plan import Plan
from roost.placement.writes.ratios import RatioChange, plan_ratios

# Resource class -> field of the body, and setting of an agent.
_FIELDS = {
    "VCPU": "cpu_allocation_ratio",
    "MEMORY_MB": "ram_allocation_ratio",
    "DISK_GB": "disk_allocation_ratio",
}


def change(call: Call) -> Plan[Response] | Response:
    """Change the allocation ratios of a page of the aggregate's hosts, or show the change with ``dry_run``.

    Returns the result of each host. A ratio that the settings of its agent fix stays. Fails with 404 for an unknown
    aggregate, with 400 for a body without a ratio, with 409 if this server uses a remote Placement.
    """
    body, state = call.body, call.current.state
    assert isinstance(body, RatiosBody)
    if call.product.remote is not None:
        raise Conflict("this server uses a remote Placement: change the ratios there", problem_type="not-supported")
    ratios = {name: ratio for name, field in _FIELDS.items() if (ratio := getattr(body, field)) is not None}
    if not ratios:
        raise field_problem("$", f"must have {', '.join(list(_FIELDS.values())[:-1])} or disk_allocation_ratio")
    number = aggregate_writes.aggregate_of(state, call.parameter("uuid"))
    hosts = state.hosts
    rows = [hosts.row_of_root.get(row) for row in aggregate_writes.members(state, number)]
    waiting = sorted(
        (hosts.ids[row], row)
        for row in rows
        if row is not None and hosts.alive.each[row] and hosts.ids[row] > body.cursor
    )
    page = waiting[: body.limit]
    results, writes, changed = [], list[Write](), list[str]()
    for _, row in call.request.while_active(page):
        result, planned = _plan_host(state, row, ratios)
        results.append(result)
        writes += planned
        if planned:
            changed.append(result.host)
            call.note_object(result.host, _details(result))
    following = page[-1][0] if len(waiting) > len(page) else None
    answer = json_response(RatiosResult(hosts=results, dry_run=body.dry_run, next=following))
    if body.dry_run or not writes:
        return answer
    aggregate = state.aggregates.name_of(number)
    call.note("", *dict.fromkeys(changed), aggregate=aggregate, name=state.aggregate_names[number])
    return Plan(answer=answer, writes=tuple(writes))


def _plan_host(state: State, host_row: int, ratios: Mapping[str, float]) -> tuple[HostRatios, tuple[Write, ...]]:
    """Plan the new ratios of a host; return its result and the writes."""
    hosts, facts = state.hosts, state.hosts.facts[host_row]
    fixed = {name: ratio for name, ratio in facts.fixed_ratios.items() if ratios.get(name, ratio) != ratio}
    root = int(hosts.provider_row.each[host_row])
    wanted = {name: ratio for name, ratio in ratios.items() if name not in fixed}
    changes, writes = plan_ratios(state, state.providers.rows_of_tree(root), wanted)
    # A ratio of the facts, such as that of a fleet document, overrides the inventories in rules.
    if facts.cpu_allocation_ratio is not None and "VCPU" in changes:
        new = msgspec.structs.replace(facts, cpu_allocation_ratio=changes["VCPU"].ratio)
        writes += writes_of_facts(state, [host_row], [new])
    problems = [
        f"the settings of its agent fix {_FIELDS[name]} at {ratio:g}: change or remove that setting"
        for name, ratio in fixed.items()
    ]
    problems += [f"it has no inventory of {name}" for name in wanted if name not in changes]
    shown = {name: _show(each) for name, each in changes.items()}
    node = hosts.nodes[host_row]
    return HostRatios(host=hosts.names[host_row], node=node, ratios=shown, problem="; ".join(problems)), writes


def _details(result: HostRatios) -> dict[str, str]:
    """Return the changed ratios of a host, for its record, in the form of other records of inventories."""
    return {
        name: f"allocation_ratio {'mixed' if each.ratio_before is None else f'{each.ratio_before:g}'} -> {each.ratio:g}"
        for name, each in result.ratios.items()
        if each.ratio_before != each.ratio
    }


def _show(change: RatioChange) -> ShownRatio:
    return ShownRatio(**msgspec.structs.asdict(change))
