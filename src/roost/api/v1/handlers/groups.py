"""Server groups: list, show, create and delete."""

import uuid
from collections.abc import Mapping
from typing import get_args

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.idempotency import check_same, mark_replay, uuid_of
from roost.api.v1.schemas.groups import DetailedGroup, GroupBody, GroupMember, GroupsPage, GroupsQuery, ShownGroup
from roost.api.v1.wire.decode_body import field_problem
from roost.api.v1.wire.pages import page_of
from roost.conductor.intake.waiting_members import count_waiting
from roost.engine.columns.state import Group, State
from roost.errors import Conflict, NotFound
from roost.fleet.group_writes import count_instances, group_creation, group_deletion
from roost.model.group import GroupPolicy, ServerGroup
from roost.model.names import uuid_form, uuid_text
from roost.model.writes import KEPT
from roost.placement.write_plan import Plan

# Members whose names are read in one query.
_CHUNK = 200
_POLICIES: tuple[GroupPolicy, ...] = get_args(GroupPolicy)


def list_groups(call: Call) -> Response:
    """List server groups, in order of creation.

    Clients without policy roost:all_projects see only groups with an instance of their own project.
    """
    call.require_thread()
    query, groups = call.query, call.current.state.groups
    assert isinstance(query, GroupsQuery)
    members = _own_members(call)
    matches = (
        (number, groups[number])
        for number in sorted(groups if members is None else members)
        if number > query.cursor
        and (not query.name or groups[number].name == query.name)
        and query.policy in (None, groups[number].policy)
    )
    page, following = page_of(matches, query)
    return json_response(GroupsPage(groups=[_show_group(group, members) for group in page], next=following))


def show(call: Call) -> Response:
    """Show a server group and its members.

    Fails with 404 for an unknown group, or one without an instance of the client's project.
    """
    call.require_thread()
    own = _own_members(call)
    group = _find_visible(call, own)
    summary = _show_group(group, own)
    return json_response(
        DetailedGroup(
            uuid=summary.uuid,
            name=summary.name,
            policy=summary.policy,
            max_server_per_host=summary.max_server_per_host,
            member_count=summary.member_count,
            members=_members(call, call.current.state, group),
        )
    )


def create(call: Call) -> Plan[Response] | Response:
    """Create a server group.

    Returns the group (201), also if the request is repeated with the same idempotency key. Fails with 409 if the uuid
    is in use, with 400 if ``max_server_per_host`` is set and the policy is not anti-affinity, and with 422 if the key
    belongs to another request.
    """
    body, current = call.body, call.current
    assert isinstance(body, GroupBody)
    if body.max_server_per_host is not None and body.policy != "anti-affinity":
        raise field_problem("$.max_server_per_host", f"requires the policy anti-affinity, got {body.policy}")
    group = ServerGroup(
        uuid=uuid_form(body.uuid or _new_uuid(call)),
        name=body.name,
        policy=body.policy,
        max_server_per_host=body.max_server_per_host or 1,
    )
    call.note("", group.uuid, name=group.name)
    previous, response = current.state.groups_by_uuid.get(group.uuid), _respond_created(call, group)
    if previous is None:
        return Plan(answer=response, writes=(group_creation(current, group),))
    if call.key is None or body.uuid is not None:
        raise Conflict(f"there is a server group {group.uuid} already", problem_type="already-exists")
    is_same = (previous.name, previous.policy, previous.limit) == (group.name, group.policy, group.max_server_per_host)
    check_same(call, is_same=is_same)
    return mark_replay(response)


def delete(call: Call) -> Plan[Response]:
    """Delete a server group without instances.

    Fails with 404 for an unknown group, or one without an instance of the client's project. Fails with 409 for a group
    with instances, also if they await a host.
    """
    state, own = call.current.state, _own_members(call)
    group = _find_visible(call, own)
    call.note(name=group.name)
    waiting = count_waiting(
        call.agents.reader(call.current),
        call.current.store.document,
        group.uuid,
        placed=state.holders,
        project_id=call.project,
    )
    placed = count_instances(group) if own is None else own[group.id]
    return Plan(answer=Response(status=204), writes=group_deletion(group, instance_count=placed + waiting))


def _find_visible(call: Call, own: Mapping[int, int] | None) -> Group:
    """Return the server group of the path.

    Args:
        own: see ``_own_members``.

    Raises:
        NotFound: the client sees no such group.
    """
    name = call.parameter("uuid")
    group = call.current.state.groups_by_uuid.get(uuid_form(name))
    if group is None or (own is not None and group.id not in own):
        raise NotFound("server group", name)
    return group


def _respond_created(call: Call, group: ServerGroup) -> Response:
    """Return the 201 response for a server group."""
    created = ShownGroup(
        uuid=group.uuid,
        name=group.name,
        policy=group.policy,
        max_server_per_host=group.max_server_per_host,
        member_count=0,
    )
    url = call.request.location(f"/groups/{created.uuid}")["location"]
    return json_response(created, status=201, location=url)


def _new_uuid(call: Call) -> str:
    """Return the uuid of a new group; with an idempotency key, repeated requests get the same uuid."""
    return str(uuid.uuid4()) if call.key is None else uuid_of(call, "group")


def _own_members(call: Call) -> dict[int, int] | None:
    """Count the client's own members of each visible group, by group id; None: the client may see all groups.

    A group has no project: it is visible to projects with an instance in it.
    """
    if call.project is None:
        return None
    counts: dict[int, int] = {}
    for holder in call.request.while_active(call.current.state.consumers().find_by_project(call.project)):
        instance = holder.instance
        if instance is not None and instance.group_id and instance.flavor_id != KEPT:
            counts[instance.group_id] = counts.get(instance.group_id, 0) + 1
    return counts


def _show_group(group: Group, own: Mapping[int, int] | None) -> ShownGroup:
    policy = next(each for each in _POLICIES if each == group.policy)
    return ShownGroup(
        uuid=group.uuid,
        name=group.name,
        policy=policy,
        max_server_per_host=group.limit,
        member_count=sum(group.members.values()) if own is None else own[group.id],
    )


def _members(call: Call, state: State, group: Group) -> list[GroupMember]:
    if not group.members:
        return []
    hosts, members, project = state.hosts, [], call.project
    for holder in call.request.while_active(state.holders_by_id.values()):
        instance, is_visible = holder.instance, project in {None, holder.project_id}
        if is_visible and instance is not None and instance.group_id == group.id and instance.flavor_id != KEPT:
            members.append((holder.id, holder.uuid, hosts.row_of_id[instance.host_id]))
    members.sort()
    reader = call.agents.reader(call.current)
    names: dict[bytes, str] = {}
    for at in range(0, len(members), _CHUNK):
        statuses = reader.statuses_of([uuid for _, uuid, _ in members[at : at + _CHUNK]])
        names |= {status.uuid: status.name for status in statuses}
    return [
        GroupMember(
            instance_uuid=uuid_text(uuid), name=names.get(uuid, ""), host=hosts.names[row], node=hosts.nodes[row]
        )
        for _, uuid, row in members
    ]
