import pytest

from roost.scheduler.weighers.io_ops import IoOps, IoOpsOptions
from tests.support.fleets.fleets import hosts, spec


@pytest.mark.shows("S101")
def test_operations_in_flight_are_the_weight():
    values = [0, 9, 2]
    assert IoOps(IoOpsOptions()).raw(hosts(num_io_ops=values), spec()).tolist() == values


def test_idle_hosts_come_first_by_default():
    assert IoOps(IoOpsOptions()).multiplier == -1.0
