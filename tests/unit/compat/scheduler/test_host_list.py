"""Built-in rules over host states: the list supplies the columns."""

from roost.compat.objects import RequestSpec
from roost.compat.scheduler.filters import ComputeCapabilitiesFilter
from roost.compat.scheduler.host_state import HostState
from roost.model.flavor import Flavor


def test_name_capabilities_match_the_names_of_host_states():
    states = [HostState("one", "node-1", uuid="a"), HostState("two", "node-2", uuid="b")]
    for key, wanted in (("host", "two"), ("nodename", "node-2"), ("hypervisor_hostname", "node-2"), ("uuid", "b")):
        wanted_spec = RequestSpec(flavor=Flavor(name="small", extra_specs={f"capabilities:{key}": wanted}))
        left = ComputeCapabilitiesFilter().filter_all(states, wanted_spec)
        assert [host.host for host in left] == ["two"], key
