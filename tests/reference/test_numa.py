"""The filter of memory nodes and its slow twin say the same."""

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.numa.cell import Overcommit, place_cell
from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.request import Network, Request
from roost.scheduler.filters.numa_topology import NumaTopology as Filter
from roost.scheduler.numa.constraints import networks_of, topology_of
from roost.scheduler.numa.kinds import bare
from roost.scheduler.rules import NoOptions
from roost.scheduler.spec import Spec
from tests.fleets import fleet, hosts_of
from tests.reference import numa

DEDICATED = {"hw:cpu_policy": "dedicated"}
VALUES = {
    "hw:numa_nodes": ["1", "2", "2", "4"],
    "hw:cpu_policy": ["dedicated", "dedicated", "mixed", "shared"],
    "hw:cpu_thread_policy": ["isolate", "require", "prefer"],
    "hw:emulator_threads_policy": ["isolate", "share"],
    "hw:cpu_dedicated_mask": ["0", "^0", "0-1"],
    "hw:mem_page_size": ["small", "large", "any", "2048"],
}


@st.composite
def cells(draw):
    """Give the cells of a host, whose cores are of one width."""
    threads, is_apart = draw(st.sampled_from([1, 2, 3])), draw(st.booleans())
    made = []
    for number in range(draw(st.integers(1, 4))):
        cores = [tuple(10 * core + at for at in range(threads)) for core in range(draw(st.integers(1, 4)))]
        everyone = [cpu for core in cores for cpu in core]
        pcpus = draw(st.lists(st.sampled_from(everyone), unique=True)) if is_apart else everyone
        pages = [MemoryPages(size_kb=4, total=draw(st.sampled_from([2**17, 2**18])), used=draw(st.integers(0, 2**17)))]
        large = MemoryPages(size_kb=2048, total=256, used=draw(st.sampled_from([0, 0, 200])), reserved=8)
        made.append(
            NumaCell(
                id=number,
                cpus=tuple(cpu for cpu in everyone if not is_apart or cpu not in pcpus),
                pcpus=tuple(pcpus),
                siblings=tuple(cores),
                pinned_cpus=tuple(draw(st.lists(st.sampled_from(pcpus), unique=True, max_size=3)) if pcpus else ()),
                memory_mb=draw(st.sampled_from([512, 1024])),
                memory_usage=draw(st.sampled_from([0, 0, 256, 600])),
                cpu_usage=draw(st.integers(0, 6)),
                mempages=draw(st.sampled_from([(), tuple(pages), (large, *pages)])),
                physnets=draw(st.sampled_from([(), ("a",), ("b",), ("a", "b")])),
                is_tunneled=draw(st.booleans()),
            )
        )
    return NumaTopology(cells=tuple(made))


@st.composite
def requests(draw):
    """Give a request that can be meant."""
    names = draw(st.sets(st.sampled_from(sorted(VALUES))))
    extra_specs = {name: draw(st.sampled_from(VALUES[name])) for name in sorted(names)}
    vcpus, memory_mb = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([256, 512, 1024]))
    networks = [Network(physnet=name) for name in draw(st.sampled_from(["", "", "a", "ab", "z"]))]
    networks += [Network(is_tunneled=True)] * draw(st.integers(0, 1))
    flavor = Flavor(name="f", vcpus=vcpus, memory_mb=memory_mb, extra_specs=extra_specs)
    wanted = Request(flavor=flavor, networks=tuple(networks))
    try:
        topology_of(wanted)
    except BadRequest:
        # Fewer wishes can be meant.
        return Request(flavor=msgspec.structs.replace(flavor, extra_specs=DEDICATED), networks=tuple(networks))
    return wanted


@settings(max_examples=400)
@given(st.lists(st.none() | cells(), max_size=3), requests(), st.sampled_from([1.0, 2.0]))
def test_hosts_are_kept_on_whose_cells_some_arrangement_fits(topologies, request, ratio):
    state = fleet(*[HostFacts(numa=each, cpu_allocation_ratio=ratio) for each in topologies])
    spec, rule = Spec(request, now_s=0.0), Filter(NoOptions())
    wanted, needs = topology_of(request), networks_of(request)
    expected = [
        numa.numa_topology(state, row, wanted=wanted, needs=needs) for row in range(len(state.hosts))
    ]  # fmt: skip
    found = rule.keep(hosts_of(state), spec) if rule.concerns(spec) else np.ones(len(topologies), dtype=np.bool_)
    assert found.tolist() == expected
    # The second time verdicts are known.
    assert rule.keep(hosts_of(state), spec).tolist() == expected
    refused = [row for row, passes in enumerate(expected) if not passes]
    assert all(not text or "wanted" in text or "tells no" in text for text in rule.tell(hosts_of(state, refused), spec))


@settings(max_examples=600)
@given(cells(), requests(), st.sampled_from([1.0, 2.0]))
def test_what_goes_onto_a_cell_goes_onto_one_that_is_alike(host, request, ratio):
    wanted, overcommit = topology_of(request), Overcommit(cpu=ratio, memory=ratio)
    for cell in host.cells if wanted is not None else ():
        for at, asked in enumerate(wanted.cells):
            fits = [
                place_cell(each, asked, overcommit=overcommit, reserved=wanted.reserved(at)) is not None
                for each in (cell, bare(cell).cell())
            ]
            assert fits[0] == fits[1]


def test_cells_with_other_processors_taken_are_alike():
    siblings = tuple((at, at + 8) for at in range(8))
    everyone = tuple(range(16))
    taken = [(0, 8, 1), (3, 4, 12), (7, 15, 14)]  # a core and a thread of another, each time
    host = NumaCell(id=0, cpus=everyone, pcpus=everyone, siblings=siblings, memory_mb=1024)
    found = [bare(msgspec.structs.replace(host, id=at, pinned_cpus=each)) for at, each in enumerate(taken)]
    assert found[0] == found[1] == found[2]
    assert bare(msgspec.structs.replace(host, pinned_cpus=(0, 1, 2))) != found[0]  # threads of three cores
