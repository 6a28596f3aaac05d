"""Requests for dedicated processors fall back to shared processors, compared with a count by hand."""

from hypothesis import given
from hypothesis import strategies as st

from roost.model.flavor import Flavor
from roost.model.request import Request
from tests.support.fleets.worlds import host, roost_with, settings_of

WANTED = {"PCPU": 2, "VCPU": 2}
REQUEST = Request(flavor=Flavor(name="f", vcpus=2, memory_mb=1, extra_specs={"hw:cpu_policy": "dedicated"}))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4))
def test_dedicated_request_falls_back_to_shared_cpus(totals):
    names = [f"h{number}" for number in range(len(totals))]
    left = {name: {"PCPU": own, "VCPU": shared} for name, (own, shared) in zip(names, totals, strict=True)}
    roost = roost_with(
        *(host(name, MEMORY_MB=64, **free) for name, free in left.items()), settings=settings_of(max_attempts=1)
    )
    expected = sum(amount // 2 for free in left.values() for amount in free.values())
    assert roost.capacity(REQUEST).count == expected
    while True:
        fitting_class = {
            name: next((one for one in WANTED if free[one] >= WANTED[one]), None) for name, free in left.items()
        }
        passing = {name for name, one in fitting_class.items() if one}
        assert {roost.state.hosts.names[row] for row in roost.scheduler.shape(REQUEST).rank_all().rows} == passing
        decision = roost.decide(REQUEST)
        assert decision.is_granted == bool(passing)
        if not passing:
            return
        (pick,) = decision.picks
        used_class = fitting_class[pick.host]
        assert list(pick.allocations.values()) == [{"MEMORY_MB": 1, used_class: 2}]
        left[pick.host][used_class] -= 2
