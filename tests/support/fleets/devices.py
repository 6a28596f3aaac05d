"""PCI device pools and requests for tests."""

from roost.model.devices.pci import PciRequest
from roost.model.host import PciPool


def pci_pool(product="a", count=1, **more):
    """Return a pool of devices."""
    tags = more.pop("tags", {})
    return PciPool(vendor_id="8086", product_id=product, count=count, tags=tags, **more)


def pci_request(*alternatives, count=1, **more):
    """Return a request for devices, of product "a" or of the given alternatives."""
    return PciRequest(alternatives=alternatives or ({"product_id": "a"},), count=count, **more)
