"""Instances are sent to the hosts that a plain rule chooses, also if other instances of the request fail."""

from hypothesis import given
from hypothesis import strategies as st

from roost.compat.icehouse.caching_scheduler import CachingScheduler
from roost.compat.icehouse.filter_scheduler import FilterScheduler
from roost.compat.icehouse.scheduler_manager import SchedulerManager
from roost.compat.scheduler.filters import BaseHostFilter
from tests.reference.run_instance import outcomes
from tests.support.conductors.deployments import TYPE, World, scheduler_over


class Roomy(BaseHostFilter):
    """Accepts hosts with enough free memory."""

    def host_passes(self, host_state, spec_obj):
        """Return whether the host has enough free memory."""
        return host_state.free_ram_mb >= spec_obj.memory_mb


@given(
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 450)),
    st.integers(1, 6),
    st.sets(st.sampled_from("abcde")),
    st.sampled_from([FilterScheduler, CachingScheduler]),
)
def test_each_instance_is_sent_to_its_host_or_set_to_error(free_mib, count, broken, kind):
    world = World(broken=broken)
    uuids = [f"i{number}" for number in range(count)]
    request_spec = {"instance_uuids": [*uuids], "instance_type": TYPE}
    SchedulerManager(scheduler_over(world, kind, filters=[Roomy], **free_mib)).run_instance(
        "context", request_spec, None, [], [], True, {}
    )
    wanted = dict(zip(uuids, outcomes(free_mib, count=count, wanted_mib=100, broken=broken), strict=True))
    sent = {uuid: host for uuid, host, _ in world.sent}
    assert sent == {uuid: chosen[0] for uuid, chosen in wanted.items() if chosen is not None and chosen[1]}
    assert len(world.sent) == len(sent)
    assert {*world.states} == {*world.faults} == {*uuids} - {*sent}
    used = [chosen[0] for chosen in wanted.values() if chosen is not None]
    assert [state.num_instances for state in world.seen] == [used.count(host) for host in free_mib]
    for uuid, host, message in world.sent:
        assert message["request_spec"]["instance_properties"]["launch_index"] == uuids.index(uuid)
        assert message["filter_properties"]["retry"] == {"num_attempts": 1, "hosts": [[host, f"{host}-node"]]}
