"""Drains of the bench: racks, and the plain drain of a filled fleet."""

from random import Random

from bench.filled_fleets import FilledFleet
from bench.plan_drains import choose_racks
from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.simulator.traces.cospot import build_fleet
from tests.reference.room_plans import drain_in_order


def test_racks_are_disjoint_rows_of_whole_racks():
    racks = choose_racks(26, size=8, count=9, rng=Random(1))
    assert sorted(racks) == [list(range(start, start + 8)) for start in (0, 8, 16)]
    assert choose_racks(26, size=8, count=2, rng=Random(1)) == racks[:2]


def test_plain_drain_lets_as_many_instances_stay_as_the_obvious_one():
    filled, rng = FilledFleet(build_fleet(("8x8c/100m",))), Random(1)
    while filled.used_share("VCPU") < 0.8:
        filled.place(Request(flavor=Flavor(name="f", vcpus=rng.choice((1, 2, 3)), memory_mb=1)))
    hosts = list(filled.roost.state.hosts.names[:2])
    requests = {each.uuid: each.request for host in hosts for each in filled.residents(host)}
    before = filled.roost.utilisation()
    staying = filled.drain_plainly(hosts)
    assert 0 < len(staying) < len(requests)
    assert len(staying) == drain_in_order(filled.roost, requests, hosts)
    assert set(staying) <= set(hosts)
    assert filled.roost.utilisation() == before
