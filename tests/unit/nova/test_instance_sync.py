import pytest

from roost.app.up import open_product
from roost.model.group import ServerGroup
from roost.model.names import uuid_bytes
from roost.model.settings.roost_settings import Settings
from roost.nova import instance_sync
from roost.nova.database.nova_fleet import FleetChanges, NovaInstance
from roost.nova.fleet_sync import plan_group
from roost.nova.messages.request_spec import GroupMembers
from roost.nova.nova_picture import NovaPicture
from roost.placement.write_plan import Plan
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import hosts

ME, OTHER, THIRD = uuid_named("me"), uuid_named("other"), uuid_named("third")


def on(uuid, host):
    return NovaInstance(uuid=uuid, host=host, node=host, cell="", project_id="p", user_id="u")


class Columns:
    """Columns of a product whose allocations are elsewhere."""

    def __init__(self, serving):
        self._serving = serving
        self.names = list(serving.state.hosts.names)

    def place(self, *instances):
        """Write the places of instances; return the number of writes."""
        return self._plan(lambda current: instance_sync.plan_remote_places(current, instances))

    def leave(self, *uuids, before_s=2e9):
        """Write the departures of instances; return the number of writes."""
        return self._plan(lambda current: instance_sync.plan_departures(current.state, uuids, before_s=before_s))

    def join(self, group, *members):
        """Write a server group and its members."""
        while self._plan(lambda current: plan_group(current, GroupMembers(group=group, members=members))):
            pass

    def differences(self, *instances, before_s=2e9):
        """Return the uuids of instances on another host than in Nova, and of those that Nova lacks."""
        known = {instance.uuid: instance for instance in instances}

        def find(current):
            moved = instance_sync.find_moved(current.state, instances, before_s=before_s)
            numbers = [*current.state.holders, bytes(16)]
            return moved, instance_sync.find_surplus(current.state, numbers, known, before_s=before_s)

        moved, surplus = self._serving.run(find)
        return {each.uuid for each in moved}, set(surplus)

    def host_of(self, uuid):
        """Return the name of the host of an instance, if any."""
        state = self._serving.state
        holder = state.holders.get(uuid_bytes(uuid))
        return None if holder is None else state.hosts.names[state.hosts.row_of_id[holder.instance.host_id]]

    def members(self, group):
        """Return the number of members of a group by host."""
        state = self._serving.state
        return {state.hosts.names[row]: count for row, count in state.groups_by_uuid[group.uuid].members.items()}

    def _plan(self, writes_of):
        def task(current):
            writes = writes_of(current)
            return Plan(answer=len(writes), writes=writes)

        return self._serving.run(task)


@pytest.fixture
def columns():
    product, serving = open_product("sqlite://", Settings())
    try:
        serving.run(lambda _: product.install(hosts(2)))
        yield Columns(serving)
    finally:
        serving.stop()


def test_instance_without_allocations_gets_the_host_of_nova(columns):
    first, second = columns.names
    assert columns.place(on(ME, first)) == 1
    assert columns.place(on(ME, first)) == 0
    columns.place(on(ME, second))
    assert columns.host_of(ME) == second


def test_instances_on_unknown_hosts_wait(columns):
    assert columns.place(on(ME, "nowhere")) == 0
    assert columns.host_of(ME) is None


def test_deleted_instance_leaves_unless_a_later_decision_placed_it_again(columns):
    columns.place(on(ME, columns.names[0]))
    assert columns.leave(ME, before_s=1.0) == 0
    assert columns.leave(ME, OTHER) == 1
    assert columns.host_of(ME) is None
    assert columns.leave(ME) == 0


def test_moved_instance_stays_in_its_group_except_away_from_other_affinity_members(columns):
    first, second = columns.names
    apart = ServerGroup(uuid=uuid_named("apart"), name="a", policy="anti-affinity")
    near = ServerGroup(uuid=uuid_named("near"), name="n", policy="affinity")
    columns.place(on(ME, first), on(OTHER, first), on(THIRD, first))
    columns.join(apart, ME)
    columns.join(near, OTHER, THIRD)
    columns.place(on(ME, second), on(OTHER, second))
    assert columns.members(apart) == {second: 1}
    assert columns.members(near) == {first: 1}
    columns.place(on(THIRD, second))
    assert columns.members(near) == {second: 1}


def test_differences_are_found_after_nova_had_time_to_store_a_decision(columns):
    first, second = columns.names
    columns.place(on(ME, first), on(OTHER, first))
    assert columns.differences(on(ME, first), on(OTHER, first)) == (set(), set())
    wanted = on(ME, second), on(THIRD, second)
    assert columns.differences(*wanted) == ({ME, THIRD}, {OTHER})
    assert columns.differences(*wanted, before_s=1.0) == ({THIRD}, set())


def test_picture_keeps_all_instances_if_wanted():
    picture = NovaPicture(keeps_instances=True)
    picture.add(FleetChanges(instances=(on(ME, "a"), on(OTHER, "a"))), now_s=1.0)
    picture.add(FleetChanges(gone_instances=(ME,), silent_cells={"c": "down"}), now_s=2.0)
    assert set(picture.instances) == {OTHER}
    assert set(picture.due_departures) == {ME}
    assert not picture.is_complete
    picture.add(FleetChanges(instances=(on(ME, "b"),)), now_s=3.0)
    assert (set(picture.due_departures), picture.is_complete) == (set(), True)
