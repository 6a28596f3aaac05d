"""Each instance of a request sees only the resources that the earlier instances left."""

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
from tests.support.fleets.worlds import chosen_hosts, host, hosts, roost_with, settings_of, small_request

SIBLINGS = ((0, 1), (2, 3), (4, 5), (6, 7))
LIMITS = {"numa_topology": {"cpu_allocation_ratio": 1.0, "ram_allocation_ratio": 1.0}}
NIC = PciRequest(alternatives=({"vendor_id": "8086"},))


def cell(**fields):
    """Return a NUMA cell, by default of eight threads on four cores and 1,024 MiB."""
    threads = tuple(range(8))
    return NumaCell(**{"id": 0, "cpus": threads, "pcpus": threads, "memory_mb": 1024, "siblings": SIBLINGS} | fields)


def facts(*cells, devices=()):
    """Return facts of a host; ``devices`` are the numbers of free devices near cell 0, cell 1 and so on."""
    pools = tuple(
        PciPool(vendor_id="8086", product_id="154c", numa_node=node, count=count) for node, count in enumerate(devices)
    )
    return HostFacts(numa=NumaTopology(cells=cells) if cells else None, pci_pools=pools)


def dedicated_request(vcpus=2, *, count=1, memory_mb=1, devices=(), **specs):
    """Return a request for dedicated processors."""
    specs = {f"hw:{name}": value for name, value in ({"cpu_policy": "dedicated"} | specs).items()}
    flavor = Flavor(name="f", vcpus=vcpus, memory_mb=memory_mb, extra_specs=specs)
    return Request(flavor=flavor, count=count, pci_requests=devices)


def consume(host_facts, request, *, times=1, limits=LIMITS):
    """Return the facts of a host after it takes some instances."""
    demand = ReportedDemand(request, request.pci_requests)
    for _ in range(times):
        host_facts = demand.take_from(host_facts, limits=limits)
    return host_facts


def roost_of(*host_facts, filters=("numa_topology", "pci_passthrough"), **options):
    fleets = [host(f"h{at}", facts=each, PCPU=99, VCPU=99, MEMORY_MB=99_999) for at, each in enumerate(host_facts)]
    return roost_with(*fleets, settings=settings_of(enabled_filters=filters, options=options))


# --- consumption of one instance -------------------------------------------------------------------------------------


def test_instance_takes_processors_memory_and_an_emulator_thread():
    host_facts = consume(facts(cell()), dedicated_request(2, memory_mb=16, emulator_threads_policy="isolate"))
    (cell_after,) = host_facts.numa.cells
    assert (cell_after.pinned_cpus, cell_after.memory_usage, cell_after.cpu_usage) == ((0, 1, 2), 16, 0)


@pytest.mark.parametrize(("is_packing", "expected"), [(False, [(0, 1), (0,)]), (True, [(), (0, 2, 3)])])
def test_emptiest_cell_is_preferred_unless_packing_is_on(is_packing, expected):
    request = dedicated_request(2)
    demand = ReportedDemand(request, (), is_packing=is_packing)
    host_facts = demand.take_from(facts(cell(), cell(id=1, pinned_cpus=(0,))), limits=LIMITS)
    assert [each.pinned_cpus for each in host_facts.numa.cells] == expected


def test_packing_setting_prefers_the_fullest_numa_cells():
    settings = settings_of(enabled_filters=("numa_topology",))
    packing = msgspec.structs.replace(settings, compute=Compute(packing_host_numa_cells_allocation_strategy=True))
    cells = facts(cell(), cell(id=1, pinned_cpus=(0,)))
    for each, expected in ((settings, (0, 1)), (packing, ())):
        scheduler = roost_with(host("h", facts=cells, PCPU=9, MEMORY_MB=9), settings=each).scheduler
        demand = scheduler._consumption(scheduler.shape(dedicated_request(2)))._demand
        assert demand.take_from(cells, limits=LIMITS).numa.cells[0].pinned_cpus == expected


def test_thread_isolation_takes_whole_cores():
    (cell_after,) = consume(facts(cell()), dedicated_request(2, cpu_thread_policy="isolate")).numa.cells
    assert cell_after.pinned_cpus == (0, 1, 2, 3)


def test_shared_processors_count_as_cpu_usage():
    (cell_after,) = consume(
        facts(cell()), dedicated_request(3, memory_mb=16, cpu_policy="shared", numa_nodes="1")
    ).numa.cells
    assert (cell_after.pinned_cpus, cell_after.memory_usage, cell_after.cpu_usage) == ((), 16, 3)


@pytest.mark.parametrize(("size", "expected"), [({}, (512, 0)), ({"mem_page_size": "large"}, (0, 1))])
def test_pages_of_the_requested_or_smallest_size_are_used(size, expected):
    pages = (MemoryPages(size_kb=4, total=9999), MemoryPages(size_kb=2048, total=9))
    (cell_after,) = consume(facts(cell(mempages=pages)), dedicated_request(memory_mb=2, **size)).numa.cells
    assert tuple(each.used for each in cell_after.mempages) == expected


def test_devices_are_taken_near_the_processors():
    host_facts = facts(cell(pcpus=()), cell(id=1), devices=(2, 2))
    result = consume(host_facts, dedicated_request(devices=(NIC,)))
    assert [pool.count for pool in result.pci_pools] == [2, 1]
    assert [each.pinned_cpus for each in result.numa.cells] == [(), (0, 1)]


def test_instances_without_devices_avoid_cells_with_devices():
    host_facts = facts(cell(), cell(id=1), devices=(1,))
    assert [each.pinned_cpus for each in consume(host_facts, dedicated_request()).numa.cells] == [(), (0, 1)]
    assert [each.pinned_cpus for each in consume(host_facts, dedicated_request(devices=(NIC,))).numa.cells] == [
        (0, 1),
        (),
    ]


@pytest.mark.parametrize("host_facts", [facts(), facts(cell(pcpus=(0,))), facts(devices=(0,))])
def test_unavailable_resources_are_not_taken(host_facts):
    assert consume(host_facts, dedicated_request(devices=(NIC,))) is host_facts


def test_processors_are_overcommitted_without_limits():
    host_facts = facts(cell(cpu_usage=8))
    shared = dedicated_request(1, cpu_policy="shared", numa_nodes="1")
    assert consume(host_facts, shared) is host_facts
    assert consume(host_facts, shared, limits={}).numa.cells[0].cpu_usage == 9


# --- requests for several instances ----------------------------------------------------------------------------------


def test_no_processor_is_given_to_two_instances():
    with roost_of(facts(cell()), facts(cell(pcpus=(0, 1)))) as roost:
        assert sorted(chosen_hosts(roost.decide(dedicated_request(count=5)))) == ["h0", "h0", "h0", "h0", "h1"]
        refusal = roost.decide(dedicated_request(count=6))
        reason = "2 lack room for a NUMA cell as required by the flavor"
        assert refusal.reason == f"0 of 2 hosts: {reason}; room for 5 of 6 instances"


def test_explanation_shows_the_state_at_the_last_instance():
    with roost_of(facts(cell()), facts(cell(pcpus=(0, 1)))) as roost:
        explanation = roost.explain(dedicated_request(count=6))
        assert explanation.left == 0
        assert [(each.kind, each.text) for each in explanation.changes][-1] == ("count", "5 instances instead of 6")
        assert roost.explain(dedicated_request()).left == 2


def test_no_device_is_given_to_two_instances():
    with roost_of(facts(devices=(1,)), facts(devices=(2,)), facts()) as roost:
        request = small_request(count=3, pci_requests=(NIC,))
        assert sorted(chosen_hosts(roost.decide(request))) == ["h0", "h1", "h1"]
        assert roost.decide(small_request(count=4, pci_requests=(NIC,))).found == 3


def test_hosts_without_room_are_not_alternates():
    with roost_of(facts(cell()), facts(cell()), facts(cell(pinned_cpus=(0, 1, 2, 3, 4, 5, 6)))) as roost:
        alternates = roost.decide(dedicated_request(8, count=2)).alternates
        assert alternates == {}


def test_earlier_instances_of_a_request_count_as_io_ops():
    with roost_of(HostFacts(), HostFacts(num_io_ops=1), filters=("io_ops",), max_io_ops_per_host=3) as roost:
        assert chosen_hosts(roost.decide(small_request(count=5))) == ["h0", "h1", "h0", "h1", "h0"]
        assert roost.decide(small_request(count=6)).found == 5


def test_next_request_starts_from_the_reported_facts():
    with roost_of(facts(cell(), devices=(4,)), facts(cell(), devices=(4,))) as roost:
        request = dedicated_request(count=3, devices=(NIC,))
        first = roost.decide(request)
        current, operations = list(roost.state.hosts.facts), roost.state.hosts.column("num_io_ops").tolist()
        assert current == [facts(cell(), devices=(4,))] * 2
        assert operations == [0.0, 0.0]
        assert roost.decide(msgspec.structs.replace(request, count=8)).is_granted
        assert roost.replay(first.uuid).is_same


def test_failed_request_restores_the_facts():
    with roost_of(facts(cell())) as roost:
        roost.scheduler.witness = _fail
        with pytest.raises(Unavailable):
            roost.decide(dedicated_request(count=9))
        assert roost.state.hosts.facts == [facts(cell())]


def _fail(shape):
    if not shape.rank(1).rows:
        raise Unavailable("the store does not answer")


def test_many_instances_spread_over_the_hosts_of_a_large_fleet():
    with roost_with(hosts(300, VCPU=9, MEMORY_MB=99)) as roost:
        assert len(set(chosen_hosts(roost.decide(small_request(count=300))))) == 300


# --- host states -----------------------------------------------------------------------------------------------------


def test_nova_host_states_are_consumed_the_same_way():
    nova_cell = SimpleNamespace(
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
    state = HostState("a", "a", numa_topology=SimpleNamespace(cells=[nova_cell]))
    state.pci_stats = [{"vendor_id": "8086", "product_id": "154c", "numa_node": 0, "count": 2}]
    spec = RequestSpec.from_request(dedicated_request(devices=(NIC,)))
    judge = filter_for(NumaFilter)(NoOptions())
    assert judge.filter_all([state], spec)
    state.consume_from_request(spec)
    assert state.numa_topology.cells[0].pinned_cpus == {0, 1}
    assert [pool["count"] for pool in state.pci_stats] == [1]
    assert (state.num_instances, state.num_io_ops) == (1, 1)
    assert not list(judge.filter_all([state], spec))
