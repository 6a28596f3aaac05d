"""Instances of one request find hosts as those before them leave them."""

from types import SimpleNamespace

import msgspec
import pytest

from roost.compat.objects import RequestSpec
from roost.compat.scheduler.filters import filter_for
from roost.compat.scheduler.host_state import HostState
from roost.errors import Unavailable
from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts, PciPool
from roost.model.request import Request
from roost.model.settings.roost_settings import Compute
from roost.scheduler.filters.numa_topology import NumaTopology as NumaFilter
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.pipeline.consumption import ReportedDemand
from tests.support.fleets.worlds import chosen, host, hosts, roost_with, settings_of, wish

SIBLINGS = ((0, 1), (2, 3), (4, 5), (6, 7))
LIMITS = {"numa_topology": {"cpu_allocation_ratio": 1.0, "ram_allocation_ratio": 1.0}}
NIC = PciRequest(alternatives=({"vendor_id": "8086"},))


def cell(**told):
    """Give a cell of eight threads on four cores and 1,024 MiB, where nothing else is said."""
    threads = tuple(range(8))
    return NumaCell(**{"id": 0, "cpus": threads, "pcpus": threads, "memory_mb": 1024, "siblings": SIBLINGS} | told)


def facts(*cells, devices=()):
    """Give facts of a host with pools of so many devices near cell 0, cell 1 and so on."""
    pools = tuple(
        PciPool(vendor_id="8086", product_id="154c", numa_node=node, count=count) for node, count in enumerate(devices)
    )
    return HostFacts(numa=NumaTopology(cells=cells) if cells else None, pci_pools=pools)


def pinned(vcpus=2, *, count=1, memory_mb=1, devices=(), **specs):
    """Give a request for processors of its own."""
    specs = {f"hw:{name}": value for name, value in ({"cpu_policy": "dedicated"} | specs).items()}
    flavor = Flavor(name="f", vcpus=vcpus, memory_mb=memory_mb, extra_specs=specs)
    return Request(flavor=flavor, count=count, pci_requests=devices)


def after(told, request, *, times=1, limits=LIMITS):
    """Give the facts of a host with so many instances more."""
    demand = ReportedDemand(request, request.pci_requests)
    for _ in range(times):
        told = demand.take_from(told, limits=limits)
    return told


def roost_of(*told, filters=("numa_topology", "pci_passthrough"), **options):
    fleets = [host(f"h{at}", facts=each, PCPU=99, VCPU=99, MEMORY_MB=99_999) for at, each in enumerate(told)]
    return roost_with(*fleets, settings=settings_of(enabled_filters=filters, options=options))


# --- what one instance takes -----------------------------------------------------------------------------------------


def test_an_instance_takes_processors_memory_and_the_thread_of_its_emulator():
    told = after(facts(cell()), pinned(2, memory_mb=16, emulator_threads_policy="isolate"))
    (found,) = told.numa.cells
    assert (found.pinned_cpus, found.memory_usage, found.cpu_usage) == ((0, 1, 2), 16, 0)


@pytest.mark.parametrize(("is_packing", "taken"), [(False, [(0, 1), (0,)]), (True, [(), (0, 2, 3)])])
def test_the_cell_with_most_left_is_preferred_unless_cells_are_packed(is_packing, taken):
    request = pinned(2)
    demand = ReportedDemand(request, (), is_packing=is_packing)
    told = demand.take_from(facts(cell(), cell(id=1, pinned_cpus=(0,))), limits=LIMITS)
    assert [each.pinned_cpus for each in told.numa.cells] == taken


def test_packing_cells_is_a_setting():
    settings = settings_of(enabled_filters=("numa_topology",))
    packing = msgspec.structs.replace(settings, compute=Compute(packing_host_numa_cells_allocation_strategy=True))
    cells = facts(cell(), cell(id=1, pinned_cpus=(0,)))
    for each, expected in ((settings, (0, 1)), (packing, ())):
        scheduler = roost_with(host("h", facts=cells, PCPU=9, MEMORY_MB=9), settings=each).scheduler
        demand = scheduler._consumption(scheduler.shape(pinned(2)))._demand
        assert demand.take_from(cells, limits=LIMITS).numa.cells[0].pinned_cpus == expected


def test_who_isolates_threads_takes_whole_cores():
    (found,) = after(facts(cell()), pinned(2, cpu_thread_policy="isolate")).numa.cells
    assert found.pinned_cpus == (0, 1, 2, 3)


def test_who_shares_processors_uses_them():
    (found,) = after(facts(cell()), pinned(3, memory_mb=16, cpu_policy="shared", numa_nodes="1")).numa.cells
    assert (found.pinned_cpus, found.memory_usage, found.cpu_usage) == ((), 16, 3)


@pytest.mark.parametrize(("size", "used"), [({}, (512, 0)), ({"mem_page_size": "large"}, (0, 1))])
def test_pages_of_the_size_that_was_chosen_are_used_or_the_smallest(size, used):
    pages = (MemoryPages(size_kb=4, total=9999), MemoryPages(size_kb=2048, total=9))
    (found,) = after(facts(cell(mempages=pages)), pinned(memory_mb=2, **size)).numa.cells
    assert tuple(each.used for each in found.mempages) == used


def test_devices_are_taken_near_the_processors():
    told = facts(cell(pcpus=()), cell(id=1), devices=(2, 2))
    found = after(told, pinned(devices=(NIC,)))
    assert [pool.count for pool in found.pci_pools] == [2, 1]
    assert [each.pinned_cpus for each in found.numa.cells] == [(), (0, 1)]


def test_instances_without_devices_stay_away_from_them():
    told = facts(cell(), cell(id=1), devices=(1,))
    assert [each.pinned_cpus for each in after(told, pinned()).numa.cells] == [(), (0, 1)]
    assert [each.pinned_cpus for each in after(told, pinned(devices=(NIC,))).numa.cells] == [(0, 1), ()]


@pytest.mark.parametrize("told", [facts(), facts(cell(pcpus=(0,))), facts(devices=(0,))])
def test_what_is_not_there_is_not_taken(told):
    assert after(told, pinned(devices=(NIC,))) is told


def test_where_nobody_set_limits_only_what_there_is_counts():
    told = facts(cell(cpu_usage=8))
    shared = pinned(1, cpu_policy="shared", numa_nodes="1")
    assert after(told, shared) is told
    assert after(told, shared, limits={}).numa.cells[0].cpu_usage == 9


# --- requests for several --------------------------------------------------------------------------------------------


def test_no_processor_is_given_to_two_instances():
    with roost_of(facts(cell()), facts(cell(pcpus=(0, 1)))) as roost:
        assert sorted(chosen(roost.decide(pinned(count=5)))) == ["h0", "h0", "h0", "h0", "h1"]
        refused = roost.decide(pinned(count=6))
        lacks = "2 lack room for a NUMA cell as required by the flavor"
        assert refused.reason == f"0 of 2 hosts: {lacks}; room for 5 of 6 instances"


def test_a_refusal_is_explained_as_the_last_instance_met_it():
    with roost_of(facts(cell()), facts(cell(pcpus=(0, 1)))) as roost:
        explanation = roost.explain(pinned(count=6))
        assert explanation.left == 0
        assert [(each.kind, each.text) for each in explanation.changes][-1] == ("count", "5 instances instead of 6")
        assert roost.explain(pinned()).left == 2


def test_no_device_is_given_to_two_instances():
    with roost_of(facts(devices=(1,)), facts(devices=(2,)), facts()) as roost:
        wanted = wish(count=3, pci_requests=(NIC,))
        assert sorted(chosen(roost.decide(wanted))) == ["h0", "h1", "h1"]
        assert roost.decide(wish(count=4, pci_requests=(NIC,))).found == 3


def test_alternates_are_hosts_that_still_have_room():
    with roost_of(facts(cell()), facts(cell()), facts(cell(pinned_cpus=(0, 1, 2, 3, 4, 5, 6)))) as roost:
        alternates = roost.decide(pinned(8, count=2)).alternates
        assert alternates == {}


def test_instances_of_a_request_are_operations_in_flight_for_those_after_them():
    with roost_of(HostFacts(), HostFacts(num_io_ops=1), filters=("io_ops",), max_io_ops_per_host=3) as roost:
        assert chosen(roost.decide(wish(count=5))) == ["h0", "h1", "h0", "h1", "h0"]
        assert roost.decide(wish(count=6)).found == 5


def test_the_next_request_finds_what_hosts_reported():
    with roost_of(facts(cell(), devices=(4,)), facts(cell(), devices=(4,))) as roost:
        wanted = pinned(count=3, devices=(NIC,))
        first = roost.decide(wanted)
        told, operations = list(roost.state.hosts.facts), roost.state.hosts.column("num_io_ops").tolist()
        assert told == [facts(cell(), devices=(4,))] * 2
        assert operations == [0.0, 0.0]
        assert roost.decide(msgspec.structs.replace(wanted, count=8)).is_granted
        assert roost.replay(first.uuid).is_same


def test_a_request_that_fails_gives_everything_back():
    with roost_of(facts(cell())) as roost:
        roost.scheduler.witness = _fail
        with pytest.raises(Unavailable):
            roost.decide(pinned(count=9))
        assert roost.state.hosts.facts == [facts(cell())]


def _fail(shape):
    if not shape.rank(1).rows:
        raise Unavailable("the store does not answer")


def test_many_instances_spread_over_the_hosts_of_a_large_fleet():
    with roost_with(hosts(300, VCPU=9, MEMORY_MB=99)) as roost:
        assert len(set(chosen(roost.decide(wish(count=300))))) == 300


# --- host states -----------------------------------------------------------------------------------------------------


def test_host_states_are_consumed_alike():
    told = SimpleNamespace(
        id=0,
        cpuset={0, 1, 2},
        pcpuset={0, 1, 2},
        memory=1024,
        cpu_usage=0,
        memory_usage=0,
        pinned_cpus=set(),
        siblings=[],
        mempages=[],
    )
    state = HostState("a", "a", numa_topology=SimpleNamespace(cells=[told]))
    state.pci_stats = [{"vendor_id": "8086", "product_id": "154c", "numa_node": 0, "count": 2}]
    spec = RequestSpec.from_request(pinned(devices=(NIC,)))
    judge = filter_for(NumaFilter)(NoOptions())
    assert judge.filter_all([state], spec)
    state.consume_from_request(spec)
    assert state.numa_topology.cells[0].pinned_cpus == {0, 1}
    assert [pool["count"] for pool in state.pci_stats] == [1]
    assert (state.num_instances, state.num_io_ops) == (1, 1)
    assert not list(judge.filter_all([state], spec))
