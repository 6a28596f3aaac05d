"""The limits that the scheduler sets for the NUMA cells of a host."""

import pytest

from roost.engine.numa.cell import Overcommit
from roost.engine.numa.cell_limits import read_networks, read_overcommit
from roost.errors import BadRequest
from roost.model.devices.topology import NetworkNeeds

RATIOS = {"cpu_allocation_ratio": 4.0, "ram_allocation_ratio": 1.5}


def test_limits_contain_overcommit_and_network_needs():
    networks = {"physnets": ["red", "blue"], "tunneled": True}
    limits = {"numa_topology": {**RATIOS, "network_metadata": networks}, "vcpu": 8.0}
    assert read_overcommit(limits) == Overcommit(cpu=4.0, memory=1.5)
    assert read_networks(limits) == NetworkNeeds(physnets=frozenset({"red", "blue"}), is_tunneled=True)
    assert read_networks({"numa_topology": RATIOS}) is None


@pytest.mark.parametrize("limits", [{}, {"vcpu": 8.0}, {"numa_topology": 1.0}])
def test_limits_without_a_numa_topology_are_none(limits):
    assert read_overcommit(limits) is None
    assert read_networks(limits) is None


@pytest.mark.parametrize(
    ("numa_limits", "problem"),
    [
        ({"cpu_allocation_ratio": 4.0}, "ram_allocation_ratio"),
        ({**RATIOS, "cpu_allocation_ratio": "many"}, r"\$.cpu_allocation_ratio"),
        ({**RATIOS, "network_metadata": {"physnets": 1}}, r"\$.network_metadata.physnets"),
    ],
)
def test_malformed_numa_limits_are_refused(numa_limits, problem):
    with pytest.raises(BadRequest, match=f"limits of numa_topology are invalid: .*{problem}"):
        read_overcommit({"numa_topology": numa_limits})
