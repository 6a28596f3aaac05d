"""What the scheduler told a host of its memory nodes."""

import pytest

from roost.engine.numa.cell import Overcommit
from roost.engine.numa.cell_limits import read_networks, read_overcommit
from roost.errors import BadRequest
from roost.model.devices.topology import NetworkNeeds

RATIOS = {"cpu_allocation_ratio": 4.0, "ram_allocation_ratio": 1.5}


def test_limits_say_how_much_of_a_cell_may_be_given_out_and_what_it_is_to_be_near_to():
    networks = {"physnets": ["red", "blue"], "tunneled": True}
    limits = {"numa_topology": {**RATIOS, "network_metadata": networks}, "vcpu": 8.0}
    assert read_overcommit(limits) == Overcommit(cpu=4.0, memory=1.5)
    assert read_networks(limits) == NetworkNeeds(physnets=frozenset({"red", "blue"}), is_tunneled=True)
    assert read_networks({"numa_topology": RATIOS}) is None


@pytest.mark.parametrize("limits", [{}, {"vcpu": 8.0}, {"numa_topology": 1.0}])
def test_limits_that_say_nothing_of_cells_are_none(limits):
    assert read_overcommit(limits) is None
    assert read_networks(limits) is None


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"cpu_allocation_ratio": 4.0}, "ram_allocation_ratio"),
        ({**RATIOS, "cpu_allocation_ratio": "many"}, r"\$.cpu_allocation_ratio"),
        ({**RATIOS, "network_metadata": {"physnets": 1}}, r"\$.network_metadata.physnets"),
    ],
)
def test_limits_that_cannot_be_meant_are_refused(told, problem):
    with pytest.raises(BadRequest, match=f"limits of numa_topology are invalid: .*{problem}"):
        read_overcommit({"numa_topology": told})
