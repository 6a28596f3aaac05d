import pytest

from roost.model.host import HostFacts, PciPool
from roost.scheduler.shape.score_table import ScoreTable
from roost.scheduler.weighers.pci import Pci, PciOptions
from tests.support.fleets.fleets import fleet, hosts_of, spec

RULE = Pci(PciOptions())


def devices(*counts):
    """Give a host with pools of so many free devices."""
    return HostFacts(pci_pools=tuple(PciPool(vendor_id="8086", product_id="154c", count=count) for count in counts))


@pytest.mark.shows("S102")
def test_hosts_without_devices_come_first_then_those_with_the_fewest():
    """The example of three hosts: one device, many, none."""
    state = fleet(devices(1), devices(60, 60), devices())
    assert RULE.raw(hosts_of(state), spec()).tolist() == [99.0, 1.0, 100.0]
    assert ScoreTable(state, spec(), [RULE]).weigh(None, spec()).totals.round(3).tolist() == [0.99, 0.0, 1.0]


def test_only_the_first_ninety_nine_devices_count():
    state = fleet(devices(98), devices(99), devices(100))
    assert RULE.raw(hosts_of(state), spec()).tolist() == [2.0, 1.0, 1.0]


def test_what_is_requested_makes_no_difference():
    assert RULE.concerns(spec())
    assert RULE.concerns(spec({"pci_passthrough:alias": "nic:1"}))


def test_where_no_two_hosts_differ_it_is_left_out():
    for state in (fleet(devices(), devices()), fleet(devices(3), devices(1, 2))):
        weighing = ScoreTable(state, spec(), [RULE])
        assert weighing.names == []
        assert weighing.is_local
    assert ScoreTable(fleet(devices(), devices(1)), spec(), [RULE]).names == ["pci"]


@pytest.mark.shows("S102", "S155")
def test_of_the_hosts_that_have_devices_the_one_with_the_fewest_comes_first():
    """The example of three hosts, where the request wants a device and a filter has refused the host without any."""
    state = fleet(devices(60, 60), devices(1), devices())
    with_devices = hosts_of(state, [0, 1]).rows
    assert ScoreTable(state, spec(), [RULE]).weigh(with_devices, spec()).totals.tolist() == [0.0, 1.0]
