"""Built-in rules over host states: the list supplies the columns."""

from roost.compat.objects import RequestSpec
from roost.compat.scheduler.filters import ComputeCapabilitiesFilter
from roost.compat.scheduler.host_list import HostList
from roost.compat.scheduler.host_state import HostState
from roost.engine.columns.state import Group
from roost.model.flavor import Flavor


def test_name_capabilities_match_the_names_of_host_states():
    states = [HostState("one", "node-1", uuid="a"), HostState("two", "node-2", uuid="b")]
    for key, wanted in (("host", "two"), ("nodename", "node-2"), ("hypervisor_hostname", "node-2"), ("uuid", "b")):
        wanted_spec = RequestSpec(flavor=Flavor(name="small", extra_specs={f"capabilities:{key}": wanted}))
        left = ComputeCapabilitiesFilter().filter_all(states, wanted_spec)
        assert [host.host for host in left] == ["two"], key


def test_members_of_a_group_are_counted_on_the_host_states():
    states = [HostState("one", "node-1", uuid="a"), HostState("two", "node-2", uuid="b")]
    states[1].instances = {"first": None}
    hosts, group = HostList(states), Group(group_id=1, uuid="g", policy="affinity", limit=0)
    assert not hosts.has_members(group)
    group.members = {1: 1}
    assert hosts.members(group).tolist() == [0, 1]
    assert hosts.has_members(group)
    assert not hosts.has_members(group, excluding="first")
    assert hosts.has_members(group, excluding="second")
