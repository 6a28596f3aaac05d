import pytest

from roost.model.host import HostFacts
from roost.scheduler.filters.pci_passthrough import PciPassthrough
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec
from tests.support.fleets.devices import ask, pool
from tests.support.fleets.fleets import fleet, hosts_of, spec

RULE = PciPassthrough(NoOptions())


def wants(*requests):
    """Give a request with these devices."""
    return Spec(spec().request, now_s=0.0, pci_requests=requests)


@pytest.mark.shows("S032")
def test_hosts_have_the_devices_of_all_requests():
    state = fleet(
        HostFacts(pci_pools=(pool(count=2),)),
        HostFacts(pci_pools=(pool(), pool("b"))),
        HostFacts(),
        HostFacts(pci_pools=(pool(), pool(tags={"x": "y"}))),
    )
    wanted = wants(ask(), ask(name="card"))
    assert RULE.keep(hosts_of(state), wanted).tolist() == [True, False, False, True]
    assert RULE.keep(hosts_of(state, [3, 1]), wanted).tolist() == [True, False]
    assert RULE.host_reasons(hosts_of(state, [1, 2]), wanted) == ["", "has none of 1 of product_id=a"]
    assert RULE.reason(wanted) == "lack free PCI devices: 1 of product_id=a, 1 card"
    assert RULE.reads(wanted) == "facts"
    assert not RULE.concerns(spec())


def test_requests_that_want_the_same_share_a_verdict():
    assert RULE.verdict_key(wants(ask(request_id="x"))) == RULE.verdict_key(wants(ask(request_id="y")))
    assert RULE.verdict_key(wants(ask())) != RULE.verdict_key(wants(ask(count=2)))
