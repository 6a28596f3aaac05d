"""Random hosts and requests with NUMA cells for property tests."""

import msgspec
from hypothesis import strategies as st

from roost.errors import BadRequest
from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.flavor import Flavor
from roost.model.request import Network, Request
from roost.scheduler.numa.constraints import topology_of

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
    """Return the NUMA cells of a host; all cores have the same number of threads."""
    threads, is_apart = draw(st.sampled_from([1, 2, 3])), draw(st.booleans())
    numa_cells = []
    for number in range(draw(st.integers(1, 4))):
        cores = [tuple(10 * core + at for at in range(threads)) for core in range(draw(st.integers(1, 4)))]
        cpus = [cpu for core in cores for cpu in core]
        pcpus = draw(st.lists(st.sampled_from(cpus), unique=True)) if is_apart else cpus
        pages = [MemoryPages(size_kb=4, total=draw(st.sampled_from([2**17, 2**18])), used=draw(st.integers(0, 2**17)))]
        large = MemoryPages(size_kb=2048, total=256, used=draw(st.sampled_from([0, 0, 200])), reserved=8)
        numa_cells.append(
            NumaCell(
                id=number,
                cpus=tuple(cpu for cpu in cpus if not is_apart or cpu not in pcpus),
                pcpus=tuple(pcpus),
                siblings=tuple(cores),
                pinned_cpus=tuple(draw(st.lists(st.sampled_from(pcpus), unique=True, max_size=3)) if pcpus else ()),
                memory_mb=draw(st.sampled_from([512, 1024])),
                memory_usage=draw(st.sampled_from([0, 0, 256, 600])),
                cpu_usage=draw(st.integers(0, 6)),
                mempages=draw(st.sampled_from([(), tuple(pages), (large, *pages)])),
                physnets=draw(st.sampled_from([(), ("a",), ("b",), ("a", "b")])),
                is_tunneled=draw(st.booleans()),
                socket=draw(st.sampled_from([None, 0, 0, 1])),
            )
        )
    return NumaTopology(cells=tuple(numa_cells))


@st.composite
def requests(draw):
    """Return a valid request."""
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
        # Fewer extra specs are always valid.
        return Request(flavor=msgspec.structs.replace(flavor, extra_specs=DEDICATED), networks=tuple(networks))
    return wanted
