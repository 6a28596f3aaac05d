"""Hosts with room in their NUMA cells for those of the instance."""

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
from tests.support.fleets.fleets import fleet, host_view
from tests.support.fleets.worlds import chosen_hosts, host, roost_with, settings_of

SIBLINGS = ((0, 1), (2, 3))


def topology(*cells, **more):
    """Return a topology of cells, by default of two cores with two threads each and 1,024 MiB."""
    defaults = {"cpus": (0, 1, 2, 3), "pcpus": (0, 1, 2, 3), "siblings": SIBLINGS, "memory_mb": 1024}
    return Topology(
        cells=tuple(NumaCell(**defaults | {"id": number} | more | each) for number, each in enumerate(cells))
    )


def request_for(extra_specs, *, vcpus=4, memory_mb=1024, **more):
    """Return a request, by default for four processors."""
    flavor = Flavor(name="f", vcpus=vcpus, memory_mb=memory_mb, extra_specs=extra_specs)
    return Spec(Request(flavor=flavor, **more), now_s=0.0)


DEDICATED = request_for({"hw:cpu_policy": "dedicated"})
FLEET = fleet(
    HostFacts(),
    HostFacts(numa=topology({}, {})),
    HostFacts(numa=topology({"pinned_cpus": (0,)})),
    HostFacts(numa=topology({}, siblings=((0,), (1,), (2,), (3,)))),
    HostFacts(numa=topology({"memory_mb": 512}, {"memory_mb": 512})),
)


def verdicts_of(spec, state=FLEET):
    """Return the verdicts of the filter."""
    return NumaTopology(NoOptions()).keep(host_view(state), spec).tolist()


@pytest.mark.shows("S043")
def test_host_must_have_room_in_its_cells():
    assert verdicts_of(DEDICATED) == [False, True, False, True, False]
    assert verdicts_of(request_for({"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"})) == [
        False,
        True,
        False,
        False,
        False,
    ]
    assert verdicts_of(request_for({"hw:numa_nodes": "2"})) == [False, True, False, False, True]


@pytest.mark.shows("S043")
def test_requests_without_numa_needs_are_not_filtered():
    rule = NumaTopology(NoOptions())
    assert not rule.concerns(request_for({"hw:cpu_policy": "shared"}))
    assert verdicts_of(request_for({})) == [True] * 5
    assert rule.limits(host_view(FLEET), request_for({})) == [{}] * 5


def test_host_reasons_name_the_shortage_of_each_host():
    rule = NumaTopology(NoOptions())
    assert rule.reason(DEDICATED) == "lack room for a NUMA cell as required by the flavor"
    assert rule.host_reasons(host_view(FLEET), DEDICATED) == [
        "reports no NUMA cells",
        "",
        "has 3 free processors for pinning in a cell at most, 4 required",
        "",
        "has 512 MiB in a cell at most, 1,024 required",
    ]
    two = request_for({"hw:numa_nodes": "2", "hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"})
    assert rule.reason(two) == "lack room for 2 NUMA cells as required by the flavor"
    assert rule.host_reasons(host_view(FLEET, [2, 3]), two) == ["has 1 NUMA cells, 2 required"] * 2
    assert rule.host_reasons(host_view(FLEET, [0]), request_for({})) == [""]


@pytest.mark.shows("S043")
def test_limits_have_the_ratios_and_the_network_metadata():
    rule = NumaTopology(NoOptions())
    ratios = {"cpu_allocation_ratio": 1.0, "ram_allocation_ratio": 1.0}
    assert rule.limits(host_view(FLEET, [0, 1]), DEDICATED) == [{}, {"numa_topology": ratios}]
    near = request_for({"hw:numa_nodes": "1"}, networks=(Network(physnet="b"), Network(physnet="a")))
    assert rule.limits(host_view(FLEET, [1]), near) == [
        {"numa_topology": ratios | {"network_metadata": {"physnets": ["a", "b"], "tunneled": False}}}
    ]


def test_invalid_numa_flavor_is_a_bad_request():
    bad = request_for({"hw:numa_nodes": "3"})
    rule = NumaTopology(NoOptions())
    assert rule.concerns(bad)
    with pytest.raises(BadRequest, match="divided evenly"):
        rule.check(bad)


def test_requests_for_the_same_cells_share_a_verdict():
    rule = NumaTopology(NoOptions())
    again = request_for({"hw:cpu_policy": "dedicated", "hw:other": "x"}, project_id="p")
    assert rule.verdict_key(DEDICATED) == rule.verdict_key(again)
    assert rule.verdict_key(DEDICATED) != rule.verdict_key(request_for({"hw:cpu_policy": "dedicated"}, vcpus=2))


@pytest.mark.shows("S043")
def test_overcommit_applies_to_each_cell():
    full = topology({"cpu_usage": 4}, {"cpu_usage": 1})
    state = fleet(HostFacts(numa=full), HostFacts(numa=full, cpu_allocation_ratio=2.0))
    assert verdicts_of(request_for({"hw:numa_nodes": "2"}), state) == [False, True]


def test_decision_carries_the_numa_limits_of_the_chosen_host():
    roost = roost_with(
        host("a", facts=HostFacts(numa=topology({"pinned_cpus": (0, 1)}))),
        host("b", facts=HostFacts(numa=topology({"pinned_cpus": (0,)}))),
        settings=settings_of(enabled_filters=["NUMATopologyFilter"]),
    )
    request = Request(flavor=Flavor(name="f", vcpus=3, memory_mb=8, extra_specs={"hw:cpu_policy": "dedicated"}))
    decision = roost.decide(request)
    assert chosen_hosts(decision) == ["b"]
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
def test_devices_must_be_near_the_chosen_cells(policy, expected):
    def devices(node, count=1):
        return (PciPool(vendor_id="10de", product_id="1db6", numa_node=node, count=count),)

    cells = topology({}, {"pinned_cpus": (0,)}, socket=0)  # only the first has four processors free
    state = fleet(
        HostFacts(numa=cells, pci_pools=devices(0)),
        HostFacts(numa=cells, pci_pools=devices(1)),
        HostFacts(numa=cells, pci_pools=devices(None)),
        HostFacts(numa=cells, pci_pools=devices(0, count=0)),
    )
    device_request = PciRequest(alternatives=({"vendor_id": "10de"},), numa_policy=policy, source="port")
    spec = Spec(DEDICATED.request, now_s=0.0, pci_requests=(device_request,))
    rule = NumaTopology(NoOptions())
    assert rule.keep(host_view(state), spec).tolist() == expected
    assert [rule.accepts(host_view(state), spec, at=at, mappings={}) for at in range(4)] == expected
    assert rule.verdict_key(spec) != rule.verdict_key(DEDICATED)


def test_identical_cells_are_evaluated_once(monkeypatch):
    calls, place_cell = [], host_kinds.place_cell

    def record_call(host, *arguments, **more):
        calls.append(host)
        return place_cell(host, *arguments, **more)

    monkeypatch.setattr(host_kinds, "place_cell", record_call)
    topologies = [topology({"pinned_cpus": (at,)}, {}) for at in range(4)]  # each has another processor pinned
    state = fleet(*[HostFacts(numa=each) for each in topologies * 10])
    assert NumaTopology(NoOptions()).keep(host_view(state), DEDICATED).all()
    assert len(calls) == 2


def test_nova_host_states_follow_the_same_rule():
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
    accepted_states = filter_for(NumaTopology)(NoOptions()).filter_all(states, spec)
    assert [each.host for each in accepted_states] == ["b"]
    assert states[1].limits["numa_topology"]["network_metadata"] == {"physnets": ["a"], "tunneled": True}
    assert states[0].limits == {}
