from roost.scheduler.weighers.hypervisor_version import HypervisorVersion, HypervisorVersionOptions
from tests.support.fleets.fleets import hosts, spec


def test_the_version_is_the_weight():
    values = [6002000, 0, 4001000]
    assert (
        HypervisorVersion(HypervisorVersionOptions()).raw(hosts(hypervisor_version=values), spec()).tolist() == values
    )


def test_newest_version_comes_first_by_default():
    assert HypervisorVersion(HypervisorVersionOptions()).multiplier == 1.0
