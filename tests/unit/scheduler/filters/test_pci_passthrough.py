import pytest

from roost.model.host import HostFacts
from roost.scheduler.filters.pci_passthrough import PciPassthrough
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec
from tests.support.fleets.devices import pci_pool, pci_request
from tests.support.fleets.fleets import fleet, host_view, spec

RULE = PciPassthrough(NoOptions())


def request_for(*requests):
    """Return a request for these devices."""
    return Spec(spec().request, now_s=0.0, pci_requests=requests)


@pytest.mark.shows("S032")
def test_host_must_have_the_devices_of_all_requests():
    state = fleet(
        HostFacts(pci_pools=(pci_pool(count=2),)),
        HostFacts(pci_pools=(pci_pool(), pci_pool("b"))),
        HostFacts(),
        HostFacts(pci_pools=(pci_pool(), pci_pool(tags={"x": "y"}))),
    )
    request = request_for(pci_request(), pci_request(name="card"))
    assert RULE.keep(host_view(state), request).tolist() == [True, False, False, True]
    assert RULE.keep(host_view(state, [3, 1]), request).tolist() == [True, False]
    assert RULE.host_reasons(host_view(state, [1, 2]), request) == ["", "has none of 1 of product_id=a"]
    assert RULE.reason(request) == "lack free PCI devices: 1 of product_id=a, 1 card"
    assert RULE.reads(request) == "facts"
    assert not RULE.concerns(spec())


def test_equal_device_requests_share_a_verdict():
    assert RULE.verdict_key(request_for(pci_request(request_id="x"))) == RULE.verdict_key(
        request_for(pci_request(request_id="y"))
    )
    assert RULE.verdict_key(request_for(pci_request())) != RULE.verdict_key(request_for(pci_request(count=2)))
