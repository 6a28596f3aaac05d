"""Instances: listed, shown, and released."""

import heapq
from collections.abc import Iterable, Iterator

from roost.api.placement.request import Response
from roost.api.v1.call import Call, shown
from roost.api.v1.instance_schemas import InstancesPage, InstancesQuery, ShownInstance
from roost.engine.state import Holder, State
from roost.errors import NotFound
from roost.model.fleet import Departure
from roost.model.journal import CLASS_BITS, CLASS_MASK
from roost.model.names import uuid_bytes, uuid_text
from roost.placement.claims import release_of
from roost.placement.plans import Act, Plan, Result


def list_instances(call: Call) -> Response:
    """Show a page of instances."""
    call.in_thread()
    query, state = call.query, call.current.state
    assert isinstance(query, InstancesQuery)
    found = heapq.nsmallest(query.limit + 1, _wanted(call, query), key=lambda holder: holder.id)
    page = found[: query.limit]
    following = str(page[-1].id) if len(found) > len(page) else None
    return shown(InstancesPage(instances=[_shown(state, holder) for holder in page], next=following))


def show(call: Call) -> Response:
    """Show one instance."""
    return shown(_shown(call.current.state, _instance(call)))


def delete(call: Call) -> Plan[Response] | Act[Response]:
    """Let an instance give back what it holds."""
    holder = _instance(call)
    call.check_host(_host_of(call.current.state, holder))
    if call.product.remote is not None:
        return Act(deed=Departure(instance_uuids=(uuid_text(holder.uuid),)), answer=_gone)
    return Plan(answer=Response(status=204), writes=(release_of(call.current.state, [holder]),))


def _gone(result: Result) -> Response:
    if isinstance(result, Exception):
        raise result
    return Response(status=204)


def _instance(call: Call) -> Holder:
    body = uuid_bytes(call.name)
    holder = None if body is None else call.current.state.holders.get(body)
    if holder is None or holder.instance is None:
        raise NotFound("instance", call.name)
    return holder


def _host_of(state: State, holder: Holder) -> str:
    assert holder.instance is not None, "only instances are on hosts"
    return state.hosts.names[state.hosts.row_of_id[holder.instance.host_id]]


def _wanted(call: Call, query: InstancesQuery) -> Iterator[Holder]:
    state = call.current.state
    holders: Iterable[Holder] = state.holders_by_id.values()
    if query.project is not None:
        holders = state.consumers().of_project(query.project)
    hosts = state.hosts
    ids = {hosts.ids[row] for row in hosts.rows_of_name.get(query.host.lower(), ())} if query.host else None
    for holder in call.request.while_wanted(holders):
        instance = holder.instance
        if instance is not None and holder.id > query.cursor and (ids is None or instance.host_id in ids):
            yield holder


def _shown(state: State, holder: Holder) -> ShownInstance:
    instance = holder.instance
    assert instance is not None, "only instances are shown"
    providers, name_of = state.providers, state.class_ids.name_of
    allocations: dict[str, dict[str, int]] = {}
    for inventory_id, amount in holder.takes:
        uuid = providers.uuids[providers.row_of_id[inventory_id >> CLASS_BITS]]
        allocations.setdefault(uuid, {})[name_of(inventory_id & CLASS_MASK)] = amount
    row = state.hosts.row_of_id[instance.host_id]
    group = state.groups.get(instance.group_id)
    return ShownInstance(
        uuid=uuid_text(holder.uuid),
        host=state.hosts.names[row],
        node=state.hosts.nodes[row],
        project_id=holder.project_id,
        user_id=holder.user_id,
        group=None if group is None else group.uuid,
        allocations=allocations,
    )
