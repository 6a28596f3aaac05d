"""Hosts whose memory nodes hold those of the instance."""

from types import SimpleNamespace

import pytest

from roost.compat.objects import RequestSpec
from roost.compat.scheduler.filters import filter_for
from roost.compat.scheduler.host_state import HostState
from roost.errors import BadRequest
from roost.model.devices.numa import NumaCell
from roost.model.devices.numa import NumaTopology as Topology
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts, PciPool
from roost.model.request import Network, Request
from roost.scheduler.filters.numa_topology import NumaTopology
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec
from roost.scheduler.numa import host_kinds
from tests.support.fleets.fleets import fleet, hosts_of
from tests.support.fleets.worlds import chosen, host, roost_with, settings_of

SIBLINGS = ((0, 1), (2, 3))


def topology(*cells, **more):
    """Give cells of two cores with two threads each and 1,024 MiB, where nothing else is said."""
    usual = {"cpus": (0, 1, 2, 3), "pcpus": (0, 1, 2, 3), "siblings": SIBLINGS, "memory_mb": 1024}
    return Topology(cells=tuple(NumaCell(**usual | {"id": number} | more | each) for number, each in enumerate(cells)))


def wanted(extra_specs, *, vcpus=4, memory_mb=1024, **more):
    """Give a request for four processors."""
    flavor = Flavor(name="f", vcpus=vcpus, memory_mb=memory_mb, extra_specs=extra_specs)
    return Spec(Request(flavor=flavor, **more), now_s=0.0)


PINNED = wanted({"hw:cpu_policy": "dedicated"})
FLEET = fleet(
    HostFacts(),
    HostFacts(numa=topology({}, {})),
    HostFacts(numa=topology({"pinned_cpus": (0,)})),
    HostFacts(numa=topology({}, siblings=((0,), (1,), (2,), (3,)))),
    HostFacts(numa=topology({"memory_mb": 512}, {"memory_mb": 512})),
)


def kept(spec, state=FLEET):
    """Give the verdicts."""
    return NumaTopology(NoOptions()).keep(hosts_of(state), spec).tolist()


@pytest.mark.shows("S043")
def test_hosts_without_cells_hold_no_instance_that_wants_one():
    assert kept(PINNED) == [False, True, False, True, False]
    assert kept(wanted({"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"})) == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert kept(wanted({"hw:numa_nodes": "2"})) == [False, True, False, False, True]


@pytest.mark.shows("S043")
def test_instances_that_want_no_cells_go_anywhere():
    rule = NumaTopology(NoOptions())
    assert not rule.concerns(wanted({"hw:cpu_policy": "shared"}))
    assert kept(wanted({})) == [True] * 5
    assert rule.limits(hosts_of(FLEET), wanted({})) == [{}] * 5


def test_each_refused_host_says_what_it_lacks():
    rule = NumaTopology(NoOptions())
    assert rule.reason(PINNED) == "lack room for a NUMA cell as required by the flavor"
    assert rule.host_reasons(hosts_of(FLEET), PINNED) == [
        "reports no NUMA cells",
        "",
        "has 3 processors to pin free in a cell at most, 4 are required",
        "",
        "has 512 MiB in a cell at most, 1,024 are required",
    ]
    two = wanted({"hw:numa_nodes": "2", "hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"})
    assert rule.reason(two) == "lack room for 2 NUMA cells as required by the flavor"
    assert rule.host_reasons(hosts_of(FLEET, [2, 3]), two) == ["has 1 NUMA cells, 2 are required"] * 2
    assert rule.host_reasons(hosts_of(FLEET, [0]), wanted({})) == [""]


@pytest.mark.shows("S043")
def test_a_chosen_host_is_told_what_it_may_give_out():
    rule = NumaTopology(NoOptions())
    told = {"cpu_allocation_ratio": 1.0, "ram_allocation_ratio": 1.0}
    assert rule.limits(hosts_of(FLEET, [0, 1]), PINNED) == [{}, {"numa_topology": told}]
    near = wanted({"hw:numa_nodes": "1"}, networks=(Network(physnet="b"), Network(physnet="a")))
    assert rule.limits(hosts_of(FLEET, [1]), near) == [
        {"numa_topology": told | {"network_metadata": {"physnets": ["a", "b"], "tunneled": False}}}
    ]


def test_a_flavor_that_cannot_be_meant_is_refused_as_a_request():
    bad = wanted({"hw:numa_nodes": "3"})
    rule = NumaTopology(NoOptions())
    assert rule.concerns(bad)
    with pytest.raises(BadRequest, match="divided evenly"):
        rule.check(bad)


def test_verdicts_are_shared_by_requests_that_ask_for_the_same_cells():
    rule = NumaTopology(NoOptions())
    again = wanted({"hw:cpu_policy": "dedicated", "hw:other": "x"}, project_id="p")
    assert rule.verdict_key(PINNED) == rule.verdict_key(again)
    assert rule.verdict_key(PINNED) != rule.verdict_key(wanted({"hw:cpu_policy": "dedicated"}, vcpus=2))


@pytest.mark.shows("S043")
def test_overcommit_counts_cell_by_cell():
    full = topology({"cpu_usage": 4}, {"cpu_usage": 1})
    state = fleet(HostFacts(numa=full), HostFacts(numa=full, cpu_allocation_ratio=2.0))
    assert kept(wanted({"hw:numa_nodes": "2"}), state) == [False, True]


def test_a_decision_tells_the_chosen_host_its_limits():
    roost = roost_with(
        host("a", facts=HostFacts(numa=topology({"pinned_cpus": (0, 1)}))),
        host("b", facts=HostFacts(numa=topology({"pinned_cpus": (0,)}))),
        settings=settings_of(enabled_filters=["NUMATopologyFilter"]),
    )
    request = Request(flavor=Flavor(name="f", vcpus=3, memory_mb=8, extra_specs={"hw:cpu_policy": "dedicated"}))
    decision = roost.decide(request)
    assert chosen(decision) == ["b"]
    assert (
        decision.picks[0].limits["numa_topology"]["cpu_allocation_ratio"]
        == HostView(roost.state).column("cpu_allocation_ratio")[1]
    )


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("required", [True, False, False, False]),
        ("legacy", [True, False, True, False]),
        ("preferred", [True, True, True, False]),
        ("socket", [True, True, False, False]),
    ],
)
def test_devices_must_be_to_be_had_near_the_chosen_cells(policy, expected):
    def devices(node, count=1):
        return (PciPool(vendor_id="10de", product_id="1db6", numa_node=node, count=count),)

    cells = topology({}, {"pinned_cpus": (0,)}, socket=0)  # only the first has four processors free
    state = fleet(
        HostFacts(numa=cells, pci_pools=devices(0)),
        HostFacts(numa=cells, pci_pools=devices(1)),
        HostFacts(numa=cells, pci_pools=devices(None)),
        HostFacts(numa=cells, pci_pools=devices(0, count=0)),
    )
    asked = PciRequest(alternatives=({"vendor_id": "10de"},), numa_policy=policy, source="port")
    spec = Spec(PINNED.request, now_s=0.0, pci_requests=(asked,))
    rule = NumaTopology(NoOptions())
    assert rule.keep(hosts_of(state), spec).tolist() == expected
    assert [rule.accepts(hosts_of(state), spec, at=at, mappings={}) for at in range(4)] == expected
    assert rule.verdict_key(spec) != rule.verdict_key(PINNED)


def test_cells_that_are_alike_are_looked_at_once(monkeypatch):
    looked_at, place_cell = [], host_kinds.place_cell

    def spied(host, *arguments, **more):
        looked_at.append(host)
        return place_cell(host, *arguments, **more)

    monkeypatch.setattr(host_kinds, "place_cell", spied)
    taken = [topology({"pinned_cpus": (at,)}, {}) for at in range(4)]  # by instances on other processors each
    state = fleet(*[HostFacts(numa=each) for each in taken * 10])
    assert NumaTopology(NoOptions()).keep(hosts_of(state), PINNED).all()
    assert len(looked_at) == 2


def test_host_states_are_judged_by_the_same_rule():
    cell = SimpleNamespace(
        id=0,
        cpuset={0, 1},
        pcpuset={0, 1},
        memory=1024,
        cpu_usage=0,
        memory_usage=0,
        pinned_cpus=set(),
        siblings=[{0}, {1}],
        mempages=[SimpleNamespace(size_kb=4, total=262144, used=0)],
    )
    states = [HostState("a", "a"), HostState("b", "b"), HostState("c", "c")]
    states[1].numa_topology = SimpleNamespace(cells=[cell])
    states[2].numa_topology = SimpleNamespace(cells=[SimpleNamespace(**{**vars(cell), "pinned_cpus": {1}})])
    flavor = Flavor(name="f", vcpus=2, memory_mb=1024, extra_specs={"hw:cpu_policy": "dedicated"})
    spec = RequestSpec(flavor=flavor, network_metadata=SimpleNamespace(physnets={"a"}, tunneled=True))
    found = filter_for(NumaTopology)(NoOptions()).filter_all(states, spec)
    assert [each.host for each in found] == ["b"]
    assert states[1].limits["numa_topology"]["network_metadata"] == {"physnets": ["a"], "tunneled": True}
    assert states[0].limits == {}
