import pytest

from roost.scheduler.weighers.ram import Ram, RamOptions
from tests.support.fleets.fleets import hosts, spec


@pytest.mark.shows("S097")
def test_free_memory_is_the_weight():
    values = [1024, 4096, 2048]
    assert Ram(RamOptions()).raw(hosts(free_ram_mb=values), spec()).tolist() == values


def test_low_end_of_the_scale_is_zero():
    assert Ram.minval == 0.0
