"""NUMA needs of flavors and images. The expected values are those of Nova for the same ones."""

import pytest

from roost.errors import BadRequest
from roost.model.devices.topology import NetworkNeeds
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Network, Request
from roost.scheduler.numa.constraints import networks_of, topology_of

DEDICATED, MIXED = {"hw:cpu_policy": "dedicated"}, {"hw:cpu_policy": "mixed"}
TWO = {"hw:numa_nodes": "2"}
EXPLICIT = TWO | {"hw:numa_cpus.0": "0", "hw:numa_mem.0": "256", "hw:numa_cpus.1": "1-3", "hw:numa_mem.1": "768"}
REAL_TIME = {"hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0"}


def topology_for(extra_specs, image=None):
    """Return the topology of an instance with four processors and 1,024 MiB."""
    flavor = Flavor(name="f", vcpus=4, memory_mb=1024, extra_specs=extra_specs)
    return topology_of(Request(flavor=flavor, image=Image(properties=image or {})))


def cells(*args):
    """Return the shared processors, the dedicated processors and the memory of each cell."""
    return [(sorted(cell.cpus), sorted(cell.pcpus), cell.memory_mb) for cell in topology_for(*args).cells]


@pytest.mark.parametrize(
    ("extra_specs", "image"),
    [
        ({}, {}),
        ({"hw:cpu_policy": "shared"}, {}),
        ({"hw:cpu_policy": "", "hw:numa_nodes": "", "hw:mem_page_size": "", "hw:pmem": " , "}, {}),
        ({"hw:emulator_threads_policy": "share"}, {}),
        ({"hw:numa_cpus.0": "0-3"}, {}),
        ({"hw:mem_page_size": "0"}, {}),
        ({"resources:VCPU": "4"}, {}),
        ({"resources_A:PCPU": "4"}, {}),
        ({}, {"hw_cpu_policy": "shared"}),
    ],
)
def test_request_without_numa_needs_has_no_topology(extra_specs, image):
    assert topology_for(extra_specs, image) is None


@pytest.mark.shows("S016")
@pytest.mark.parametrize(
    ("extra_specs", "image", "expected"),
    [
        (TWO, {}, [([0, 1], [], 512), ([2, 3], [], 512)]),
        ({}, {"hw_numa_nodes": "2"}, [([0, 1], [], 512), ([2, 3], [], 512)]),
        ({"hw:pmem": "fast"}, {}, [([0, 1, 2, 3], [], 1024)]),
        ({"hw:mem_page_size": "any"}, {}, [([0, 1, 2, 3], [], 1024)]),
        (DEDICATED, {"hw_cpu_policy": "shared"}, [([], [0, 1, 2, 3], 1024)]),
        ({}, {"hw_cpu_policy": "dedicated"}, [([], [0, 1, 2, 3], 1024)]),
        ({"resources:PCPU": "4"}, {}, [([], [0, 1, 2, 3], 1024)]),
        ({"resources:PCPU": "5", "hw:emulator_threads_policy": "isolate"}, {}, [([], [0, 1, 2, 3], 1024)]),
        (MIXED | {"hw:cpu_dedicated_mask": "^0"}, {}, [([0], [1, 2, 3], 1024)]),
        (MIXED | TWO | {"hw:cpu_dedicated_mask": "0,2"}, {}, [([1], [0], 512), ([3], [2], 512)]),
        (MIXED | REAL_TIME, {}, [([0], [1, 2, 3], 1024)]),
        (EXPLICIT, {}, [([0], [], 256), ([1, 2, 3], [], 768)]),
        (
            TWO,
            {"hw_numa_cpus.0": "0-3", "hw_numa_mem.0": "24", "hw_numa_cpus.1": "", "hw_numa_mem.1": "1000"},
            [([0, 1, 2, 3], [], 24), ([], [], 1000)],
        ),
        (TWO | {"hw:numa_cpus.1": "x"}, {}, [([0, 1], [], 512), ([2, 3], [], 512)]),
    ],
)
def test_processors_and_memory_are_divided_among_cells(extra_specs, image, expected):
    assert cells(extra_specs, image) == expected


@pytest.mark.parametrize(
    ("flavor", "image", "size"),
    [
        ("small", None, "small"),
        ("large", None, "large"),
        ("2048", None, 2048),
        ("2MB", None, 2048),
        ("1GiB", None, 2**20),
        ("1.5MB", None, 1536),
        ("1Mb", None, 128),
        ("any", "2048", 2048),
        ("large", "small", "small"),
    ],
)
def test_page_sizes_are_parsed(flavor, image, size):
    properties = {} if image is None else {"hw_mem_page_size": image}
    assert topology_for({"hw:mem_page_size": flavor}, properties).cells[0].page_size == size


def test_topology_has_the_thread_policies():
    topology = topology_for(DEDICATED | {"hw:emulator_threads_policy": "isolate"}, {"hw_cpu_thread_policy": "require"})
    assert (topology.isolates_emulator, topology.cells[0].threads) == (True, "require")
    assert [topology.reserved_cpus(at) for at in (0, 1)] == [1, 0]


@pytest.mark.parametrize(
    ("extra_specs", "image", "problem"),
    [
        ({"hw:numa_nodes": "0"}, {}, "must be a whole number above 0, got '0'"),
        ({"hw:numa_nodes": "x"}, {}, "got 'x'"),
        ({"hw:numa_nodes": "65"}, {}, "must be 64 or less"),
        (TWO, {"hw_numa_nodes": "2"}, "may not replace extra spec hw:numa_nodes"),
        ({"hw:numa_nodes": "3"}, {}, "cannot be divided evenly among 3 NUMA nodes"),
        ({"hw:mem_page_size": "2M"}, {}, "'2M' is not a valid size of memory pages"),
        ({"hw:mem_page_size": "99999TiB"}, {}, "are larger than"),
        ({}, {"hw_mem_page_size": "large"}, "needs extra spec hw:mem_page_size=large or any, not None"),
        ({"hw:mem_page_size": "small"}, {"hw_mem_page_size": "small"}, "not small"),
        ({"hw:mem_page_size": "any"}, {"hw_mem_page_size": "huge"}, "'huge' is not a valid size"),
        ({"hw:cpu_policy": "x"}, {}, "'x' is not a valid value of extra spec hw:cpu_policy"),
        ({"hw:cpu_policy": "shared"}, {"hw_cpu_policy": "dedicated"}, "contradicts image property"),
        ({"hw:cpu_thread_policy": "require"}, {}, "hw:cpu_thread_policy needs dedicated processors"),
        (DEDICATED | {"hw:cpu_thread_policy": "x"}, {}, "'x' is not a valid value of extra spec hw:cpu_thread_policy"),
        (
            DEDICATED | {"hw:cpu_thread_policy": "require"},
            {"hw_cpu_thread_policy": "isolate"},
            "contradicts image property hw_cpu_thread_policy=isolate",
        ),
        ({"hw:emulator_threads_policy": "isolate"}, {}, "hw:emulator_threads_policy=isolate needs"),
        (
            DEDICATED | {"hw:emulator_threads_policy": "x"},
            {},
            "not a valid value of extra spec hw:emulator_threads_policy",
        ),
        (REAL_TIME, {}, "hw:cpu_realtime needs dedicated processors"),
        (DEDICATED | {"hw:cpu_realtime": "yes"}, {}, "dedicated or real-time processors without a mask"),
        (DEDICATED | {"hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "9"}, {}, "processors with the mask 9"),
        (MIXED, {}, "needs either hw:cpu_dedicated_mask or hw:cpu_realtime"),
        (MIXED | REAL_TIME | {"hw:cpu_dedicated_mask": "0"}, {}, "and not both"),
        (MIXED | {"hw:cpu_dedicated_mask": "0-3"}, {}, "processors with the mask 0-3"),
        (DEDICATED | {"hw:cpu_dedicated_mask": "0"}, {}, "hw:cpu_dedicated_mask needs hw:cpu_policy=mixed"),
        ({"resources:PCPU": "3"}, {}, "resources:PCPU must be 4 for this flavor, got 3"),
        ({"resources:PCPU": "4", "hw:emulator_threads_policy": "isolate"}, {}, "must be 5"),
        ({"resources1:PCPU": "2", "resources2:VCPU": "2"}, {}, "resources:VCPU and resources:PCPU cannot be combined"),
        (DEDICATED | {"resources:PCPU": "4"}, {}, "cannot be combined with hw:cpu_policy"),
        ({"hw:locked_memory": "yes"}, {}, "hw:locked_memory needs hw:mem_page_size"),
        ({"hw:locked_memory": "no"}, {"hw_locked_memory": "yes"}, "contradicts"),
        (EXPLICIT, {"hw_numa_cpus.0": "0"}, "hw_numa_cpus.0 may not replace extra spec hw:numa_cpus.0"),
        (TWO | {"hw:numa_cpus.0": "0-3"}, {}, "NUMA node 0 needs both hw:numa_cpus.0 and hw:numa_mem.0"),
        (EXPLICIT | {"hw:numa_cpus.1": "1-4"}, {}, "hw:numa_cpus.1 names processor 4, the flavor has 0 to 3"),
        (EXPLICIT | {"hw:numa_cpus.1": "0-3"}, {}, "processor 0 is assigned to two NUMA nodes"),
        (EXPLICIT | {"hw:numa_cpus.1": "2-3"}, {}, "processor 1 is assigned to no NUMA node"),
        (EXPLICIT | {"hw:numa_cpus.1": "x"}, {}, "'x' is neither a processor"),
        (EXPLICIT | {"hw:numa_mem.1": "x"}, {}, "hw:numa_mem.1 must be a whole number of MiB, got 'x'"),
        (EXPLICIT | {"hw:numa_mem.1": "512"}, {}, "have 768 MiB in total, the flavor has 1024"),
        (EXPLICIT | {"hw:numa_mem.2": "0"}, {}, "are assigned to NUMA node 2, but the nodes are 0 to 1"),
    ],
)
def test_invalid_numa_settings_are_refused_with_a_reason(extra_specs, image, problem):
    with pytest.raises(BadRequest) as error:
        topology_for(extra_specs, image)
    assert problem in str(error.value)


def test_networks_of_a_request_are_combined():
    networks = (Network(physnet="a"), Network(physnet="b"), Network(is_tunneled=True), Network(physnet="a"))
    request = Request(flavor=Flavor(name="f"), networks=networks)
    assert networks_of(request) == NetworkNeeds(physnets=frozenset("ab"), is_tunneled=True)
    assert networks_of(Request(flavor=Flavor(name="f"), networks=(Network(name="n"),))) is None
