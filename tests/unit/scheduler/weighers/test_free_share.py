import pytest

from roost.engine.columns.types import Scores
from roost.scheduler.weighers.free_share import FreeShare, FreeShareOptions
from tests.support.fleets.fleets import hosts, spec

_FULL = {"total_usable_ram_mb": [1000.0] * 3, "total_usable_disk_gb": [100.0] * 3, "cpu_allocation_ratio": [2.0] * 3}


def _shares(**columns: list[float]) -> Scores:
    return FreeShare(FreeShareOptions()).raw(hosts(**columns), spec())


def test_scarcest_resource_is_the_weight_whatever_the_size_of_the_host():
    cpus = {"vcpus_total": [4.0, 64.0, 64.0], "vcpus_used": [4.0, 64.0, 16.0]}
    shares = _shares(**_FULL, **cpus, used_ram_mb=[0.0, 0.0, 900.0], used_disk_gb=[10.0, 10.0, 10.0])
    assert shares.tolist() == pytest.approx([0.5, 0.5, 0.1])


def test_resource_without_capacity_does_not_count():
    diskless = {**_FULL, "total_usable_disk_gb": [0.0, 100.0, 0.0], "total_usable_ram_mb": [1000.0, 1000.0, 0.0]}
    shares = _shares(**diskless, vcpus_total=[4.0, 4.0, 0.0], used_ram_mb=[250.0] * 3, used_disk_gb=[0.0, 100.0, 0.0])
    assert shares.tolist() == pytest.approx([0.75, 0.0, 0.0])


def test_weigher_is_off_by_default():
    assert FreeShare(FreeShareOptions()).multiplier == 0.0
