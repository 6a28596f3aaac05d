import pytest

from roost.scheduler.weighers.disk import Disk, DiskOptions
from tests.support.fleets.fleets import hosts, spec


@pytest.mark.shows("S099")
def test_free_disk_is_the_weight():
    values = [1024, 0, 2048]
    assert Disk(DiskOptions()).raw(hosts(free_disk_mb=values), spec()).tolist() == values


def test_low_end_of_the_scale_is_zero():
    assert Disk.minval == 0.0
