import pytest

from roost.model.host import HostFacts, PciPool
from roost.scheduler.shape.score_table import ScoreTable
from roost.scheduler.weighers.pci import Pci, PciOptions
from tests.support.fleets.fleets import fleet, host_view, spec

RULE = Pci(PciOptions())


def devices(*counts):
    """Return facts of a host with one pool for each number of free devices."""
    return HostFacts(pci_pools=tuple(PciPool(vendor_id="8086", product_id="154c", count=count) for count in counts))


@pytest.mark.shows("S102")
def test_hosts_without_devices_come_first_then_those_with_the_fewest():
    """The example of three hosts: one device, many, none."""
    state = fleet(devices(1), devices(60, 60), devices())
    assert RULE.raw(host_view(state), spec()).tolist() == [99.0, 1.0, 100.0]
    assert ScoreTable(state, spec(), [RULE]).weigh(None, spec()).totals.round(3).tolist() == [0.99, 0.0, 1.0]


def test_only_the_first_99_devices_count():
    state = fleet(devices(98), devices(99), devices(100))
    assert RULE.raw(host_view(state), spec()).tolist() == [2.0, 1.0, 1.0]


def test_concerns_requests_with_and_without_devices():
    assert RULE.concerns(spec())
    assert RULE.concerns(spec({"pci_passthrough:alias": "nic:1"}))


def test_weigher_is_omitted_if_all_hosts_are_equal():
    for state in (fleet(devices(), devices()), fleet(devices(3), devices(1, 2))):
        table = ScoreTable(state, spec(), [RULE])
        assert table.names == []
        assert table.is_local
    assert ScoreTable(fleet(devices(), devices(1)), spec(), [RULE]).names == ["pci"]


@pytest.mark.shows("S102", "S155")
def test_host_with_the_fewest_devices_comes_first_among_those_with_any():
    """The example of three hosts, where the request wants a device and a filter has refused the host without any."""
    state = fleet(devices(60, 60), devices(1), devices())
    with_devices = host_view(state, [0, 1]).rows
    assert ScoreTable(state, spec(), [RULE]).weigh(with_devices, spec()).totals.tolist() == [0.0, 1.0]
