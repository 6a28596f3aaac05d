import pytest

from roost.scheduler.weighers.ram import Ram, RamOptions
from tests.support.fleets.fleets import hosts, spec


@pytest.mark.shows("S097")
def test_the_most_free_memory_weighs_most():
    values = [1024, 4096, 2048]
    assert Ram(RamOptions()).raw(hosts(free_ram_mb=values), spec()).tolist() == values


def test_free_memory_below_nothing_is_the_low_end():
    assert Ram.minval == 0.0
