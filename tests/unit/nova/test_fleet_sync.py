import msgspec
import pytest

from roost.app.up import open_product
from roost.errors import StoreGone
from roost.fleet.fleet_service import Fleet
from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostFacts
from roost.model.names import uuid_bytes
from roost.model.provider import Inventory, ProviderSpec
from roost.model.settings.roost_settings import Settings
from roost.nova import fleet_sync
from roost.nova.database.nova_fleet import ComputeNode, FleetChanges, NovaInstance
from roost.nova.messages.request_spec import GroupMembers
from roost.nova.nova_picture import NovaPicture
from roost.placement.write_plan import Plan
from tests.support.fleets.named_uuids import uuid_named
from tests.support.nova_conductors import claim

CELL = uuid_named("cell")


class Cloud:
    """A Nova: its computes create providers in Placement, and its databases have their nodes."""

    def __init__(self, product, serving):
        self.product, self.serving, self.picture = product, serving, NovaPicture()
        self.run = serving.run

    def add_provider(self, name, **totals):
        """Create the provider of a node, as its compute does."""
        spec = ProviderSpec(
            uuid=uuid_named(name),
            name=f"{name}.domain",
            inventories={each: Inventory(total=total) for each, total in (totals or {"VCPU": 8}).items()},
        )
        self.run(lambda _: self.product.placement.create_providers([spec]))

    def read(self, **changes):
        """Read changes of the databases, and write all that is due."""
        self.picture.add(FleetChanges(**changes), now_s=1000.0)
        while self.run(lambda current: fleet_sync.write_hosts(current, self.picture)):
            pass

    def allocate(self, uuid, **vcpus):
        """Claim as Nova's conductor does, without the scheduler."""
        claim(self.serving, uuid, **vcpus)

    def plan(self, writes_of):
        """Commit planned writes; return their number."""

        def task(current):
            writes = writes_of(current)
            return Plan(answer=len(writes), writes=writes)

        return self.run(task)

    def place(self, uuid, host):
        """Read from the databases that an instance is on a host."""
        instance = NovaInstance(uuid=uuid, host=host, node=f"{host}.domain", cell=CELL, project_id="p", user_id="u")
        return self.plan(lambda current: fleet_sync.plan_instances(current, [instance]))

    def join(self, group, *members):
        """Prepare a server group, as for a request; return the number of writes."""
        wanted, total = GroupMembers(group=group, members=members), 0
        while count := self.plan(lambda current: fleet_sync.plan_group(current, wanted)):
            total += count
        return total

    def host_of(self, uuid):
        """Return the name of the host of an instance, if any."""
        instance, hosts = self.serving.state.holders[uuid_bytes(uuid)].instance, self.serving.state.hosts
        return None if instance is None else hosts.names[hosts.row_of_id[instance.host_id]]

    def members(self, group):
        """Return the number of members of a group by host."""
        state = self.serving.state
        return {
            state.hosts.names[row]: count for row, count in state.groups_by_uuid[group.uuid].members.items() if count
        }


@pytest.fixture
def cloud():
    product, serving = open_product("sqlite://", Settings())
    try:
        yield Cloud(product, serving)
    finally:
        serving.stop()


def node(name, **facts):
    return ComputeNode(
        uuid=uuid_named(name),
        host=name,
        node=f"{name}.domain",
        cell=CELL,
        facts=HostFacts(**facts),
        is_mapped=True,
        is_ready=True,
    )


def add_hosts(cloud, *names):
    for name in names:
        cloud.add_provider(name)
    cloud.read(computes=tuple(map(node, names)))


def test_node_becomes_a_host_once_its_compute_has_created_the_provider(cloud):
    cloud.read(computes=(node("a"),))
    assert cloud.serving.state.hosts.names == []
    cloud.add_provider("a")
    cloud.read()
    hosts = cloud.serving.state.hosts
    assert (hosts.names, hosts.nodes, hosts.facts) == (["a"], ["a.domain"], [HostFacts(cell=CELL)])


def test_changed_facts_are_written_and_equal_ones_are_not(cloud):
    add_hosts(cloud, "a")
    position = cloud.serving.state.position
    cloud.read(computes=(node("a"),))
    assert cloud.serving.state.position == position
    cloud.read(computes=(node("a", is_disabled=True, disabled_reason="x"),))
    assert cloud.serving.state.hosts.facts[0].disabled_reason == "x"


def test_node_that_moves_to_another_service_is_found_under_the_new_name(cloud):
    add_hosts(cloud, "a", "b")
    cloud.read(computes=(msgspec.structs.replace(node("a"), host="b"),))
    hosts = cloud.serving.state.hosts
    assert (hosts.names, hosts.nodes) == (["b", "b"], ["a.domain", "b.domain"])
    assert hosts.rows_of_name == {"b": [0, 1]}
    assert hosts.find_rows(("a",)).tolist() == []


def test_unmapped_node_is_no_host_until_it_is_mapped(cloud):
    cloud.add_provider("a")
    cloud.read(computes=(msgspec.structs.replace(node("a"), is_mapped=False, is_ready=False),))
    assert cloud.serving.state.hosts.names == []
    cloud.read(computes=(node("a"),))
    assert cloud.serving.state.hosts.names == ["a"]


def test_facts_that_cannot_be_stored_leave_the_other_hosts_alone(cloud):
    add_hosts(cloud, "a", "b")
    cloud.read(computes=(node("a", cpu_allocation_ratio=1e300), node("b", num_io_ops=3)))
    assert [facts.num_io_ops for facts in cloud.serving.state.hosts.facts] == [0, 3]


def test_metadata_of_an_aggregate_follows_nova(cloud):
    aggregate = Aggregate(uuid=uuid_named("g"), name="g", metadata={"ssd": "true"})
    for each in (aggregate, Aggregate(uuid=aggregate.uuid, name="h"), Aggregate(uuid=aggregate.uuid)):
        cloud.run(lambda current, each=each: fleet_sync.write_aggregates(current, [each]))
        state = cloud.serving.state
        number = state.aggregates.id_of(each.uuid)
        assert (state.aggregate_names[number], state.metadata[number]) == (each.name, each.metadata)


def test_instance_that_nova_placed_gets_its_host_and_keeps_its_allocations(cloud):
    add_hosts(cloud, "a")
    me = uuid_named("me")
    cloud.allocate(me, a=2)
    assert cloud.host_of(me) is None
    assert cloud.place(me, "a") == 2
    holder = cloud.serving.state.holders[uuid_bytes(me)]
    assert (cloud.host_of(me), holder.generation, len(holder.takes)) == ("a", 1, 1)
    assert cloud.serving.state.hosts.column("num_instances").tolist() == [1]
    assert cloud.place(me, "a") == 0


def test_instance_changes_its_host_only_with_its_allocations(cloud):
    add_hosts(cloud, "a", "b")
    me = uuid_named("me")
    cloud.allocate(me, b=1)
    assert cloud.place(me, "a") == 0
    cloud.place(me, "b")
    assert cloud.place(me, "a") == 0
    assert cloud.host_of(me) == "b"


def test_unknown_instances_and_hosts_are_ignored(cloud):
    add_hosts(cloud, "a")
    assert cloud.place(uuid_named("me"), "a") == 0
    cloud.allocate(uuid_named("me"), a=1)
    assert cloud.place(uuid_named("me"), "z") == 0


def test_members_join_a_group_of_a_request_once(cloud):
    add_hosts(cloud, "a", "b")
    one, two = uuid_named("one"), uuid_named("two")
    for uuid, host in ((one, "a"), (two, "b")):
        cloud.allocate(uuid, **{host: 1})
        cloud.place(uuid, host)
    group = ServerGroup(uuid=uuid_named("g"), name="g", policy="anti-affinity")
    assert cloud.join(group, one, two, uuid_named("new")) == 1 + 4
    assert cloud.members(group) == {"a": 1, "b": 1}
    assert cloud.join(group, one, two) == 0


def test_member_on_another_host_than_its_affinity_group_stays_outside(cloud):
    add_hosts(cloud, "a", "b")
    one, two = uuid_named("one"), uuid_named("two")
    for uuid, host in ((one, "a"), (two, "b")):
        cloud.allocate(uuid, **{host: 1})
        cloud.place(uuid, host)
    group = ServerGroup(uuid=uuid_named("g"), name="g", policy="affinity")
    cloud.join(group, one, two)
    assert cloud.members(group) == {"a": 1}


def test_more_members_on_a_host_than_anti_affinity_allows_are_still_counted(cloud):
    add_hosts(cloud, "a")
    one, two = uuid_named("one"), uuid_named("two")
    for uuid in (one, two):
        cloud.allocate(uuid, a=1)
        cloud.place(uuid, "a")
    group = ServerGroup(uuid=uuid_named("g"), name="g", policy="anti-affinity")
    cloud.join(group, one, two)
    assert cloud.members(group) == {"a": 2}


def test_refused_new_host_leaves_the_other_new_hosts_alone(cloud):
    for name in ("a", "b"):
        cloud.add_provider(name)
    cloud.read(computes=(node("a", cpu_allocation_ratio=1e300), node("b")))
    assert cloud.serving.state.hosts.names == ["b"]


def test_new_hosts_are_one_commit(cloud):
    for name in ("a", "b", "c"):
        cloud.add_provider(name)
    position = cloud.serving.state.position
    cloud.read(computes=tuple(map(node, ("a", "b", "c"))))
    assert cloud.serving.state.position == position + 1


def test_new_host_stays_due_while_the_database_does_not_answer(cloud, monkeypatch):
    def fail(_fleet, _specs):
        raise StoreGone("no answer")

    cloud.add_provider("a")
    with monkeypatch.context() as patch:
        patch.setattr(Fleet, "register_hosts", fail)
        with pytest.raises(StoreGone):
            cloud.read(computes=(node("a"),))
    assert cloud.serving.state.hosts.names == []
    cloud.read()
    assert cloud.serving.state.hosts.names == ["a"]


def test_new_group_is_planned_so_that_a_lost_race_over_it_repeats_the_task(cloud):
    group = ServerGroup(uuid=uuid_named("g"), name="g", policy="anti-affinity")
    wanted = GroupMembers(group=group, members=())
    (first,), (second,) = (cloud.run(lambda current: fleet_sync.plan_group(current, wanted)) for _ in range(2))
    assert cloud.serving.state.groups_by_uuid == {}
    cloud.plan(lambda _: (first,))
    attempts = []

    def task(current):
        attempts.append(current.state.position)
        writes = (second,) if len(attempts) == 1 else fleet_sync.plan_group(current, wanted)
        return Plan(answer=len(writes), writes=writes)

    assert cloud.run(task) == 0
    assert len(attempts) == 2
