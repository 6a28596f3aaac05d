"""Instances of one request share hosts like in the plain simulation, which assigns each processor and device once."""

import copy
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts, PciPool
from roost.model.request import Request
from tests.reference import several_instances as slow
from tests.support.fleets.worlds import host, roost_with, settings_of

pytestmark = pytest.mark.long

FILTERS = ["io_ops", "numa_topology", "pci_passthrough"]
FLAT = {f"{name}_weight_multiplier": 0.0 for name in ("cpu", "ram", "disk")}


def random_host(random: Random, number: int) -> slow.Host:
    cells, processors = [], iter(range(64))
    for at in range(random.choice((1, 2, 2, 3))):
        free = [next(processors) for _ in range(random.choice((1, 2, 4, 7)))]
        cells.append(slow.Cell(at, free, random.choice((4, 8, 30))))
    nodes = [*range(len(cells)), None]
    pools = [slow.Pool(random.choice(nodes), random.choice((0, 1, 3))) for _ in range(random.choice((0, 1, 2, 3)))]
    return slow.Host(f"h{number}", cells, pools, random.choice((0, 0, 1, 5)))


def random_wish(random: Random) -> slow.Wish:
    nodes = random.choice((1, 1, 2))
    return slow.Wish(
        count=random.choice((2, 3, 5)),
        vcpus=nodes * random.choice((1, 1, 2)),
        memory_mb=nodes * random.choice((1, 3)),
        nodes=nodes,
        devices=random.choice((0, 1, 1, 2)),
        policy=random.choice(("legacy", "required", "preferred")),
        isolates_emulator=random.random() < 0.3,
    )


def facts_of(plain: slow.Host) -> HostFacts:
    cells = [
        NumaCell(id=cell.number, cpus=tuple(cell.free), pcpus=tuple(cell.free), memory_mb=cell.memory_mb)
        for cell in plain.cells
    ]
    pools = [
        PciPool(vendor_id="8086", product_id="154c", numa_node=pool.node, count=pool.count) for pool in plain.pools
    ]
    return HostFacts(num_io_ops=plain.io_ops, numa=NumaTopology(cells=tuple(cells)), pci_pools=tuple(pools))


def request_of(wish: slow.Wish) -> Request:
    specs = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": str(wish.nodes)}
    if wish.isolates_emulator:
        specs["hw:emulator_threads_policy"] = "isolate"
    device = PciRequest(count=wish.devices or 1, alternatives=({"vendor_id": "8086"},), numa_policy=wish.policy)
    return Request(
        flavor=Flavor(name="f", vcpus=wish.vcpus, memory_mb=wish.memory_mb, extra_specs=specs),
        count=wish.count,
        pci_requests=(device,) if wish.devices else (),
    )


def compare(seed: int) -> None:
    random = Random(seed)
    plain = [random_host(random, number) for number in range(random.choice((1, 2, 4)))]
    limit = random.choice((2, 8))
    fleets = [host(each.name, facts=facts_of(each), PCPU=999, MEMORY_MB=9999) for each in plain]
    options = {**FLAT, "max_io_ops_per_host": limit}
    with roost_with(*fleets, settings=settings_of(enabled_filters=FILTERS, options=options)) as roost:
        hosts = roost.state.hosts
        facts, io_ops = list(hosts.facts), hosts.column("num_io_ops").tolist()
        for _ in range(3):
            # Each request starts from the reported facts of the hosts.
            wish = random_wish(random)
            outcome = slow.decide(copy.deepcopy(plain), wish, limit=limit)
            rehearsal = roost.decide(request_of(wish), dry_run=True)
            decision = roost.decide(request_of(wish))
            assert decision.found == len(outcome.chosen)
            assert decision.is_granted == (len(outcome.chosen) == wish.count)
            if decision.is_granted:
                assert [pick.host for pick in decision.picks] == outcome.chosen
                found = [pick.host for picks in decision.alternates.values() for pick in picks]
                assert found == outcome.others[:2]
            assert [pick.host for pick in rehearsal.picks] == [pick.host for pick in decision.picks]
            assert (rehearsal.stages, rehearsal.best, rehearsal.reason) == (
                decision.stages,
                decision.best,
                decision.reason,
            )
            assert roost.replay(decision.uuid).is_same
            assert hosts.facts == facts
            assert hosts.column("num_io_ops").tolist() == io_ops


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_several_instances_share_hosts_like_the_plain_simulation(seed):
    compare(seed)
