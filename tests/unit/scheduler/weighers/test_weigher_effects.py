"""Effects of the metrics, device and image weighers on decisions."""

import numpy as np
import pytest

from roost.engine.columns.state import State
from roost.errors import ComputeHostMetricNotFound, NotFound
from roost.model.flavor import Flavor
from roost.model.fleet import Departure
from roost.model.host import HostFacts, PciPool
from roost.model.image import Image
from roost.model.request import Request
from roost.scheduler.framework.plugin import NoOptions
from roost.settings import read_settings
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import (
    aggregate,
    chosen_hosts,
    digest,
    host,
    hosts,
    merge_fleets,
    roost_on,
    roost_with,
    small_request,
)

DEVICES = HostFacts(pci_pools=(PciPool(vendor_id="8086", product_id="154c", count=1),))
BUSY, IDLE = (HostFacts(metrics={"load": load}) for load in (0.9, 0.1))
BY_LOAD = read_settings('[metrics]\nweight_setting = ["load=-1"]')
BY_IMAGE = read_settings("[filter_scheduler]\nimage_props_weight_multiplier = 10.0")


def instances_by_host(state: State) -> list[float]:
    """Return the number of instances on each host."""
    return state.hosts.column("num_instances").tolist()


def test_request_without_devices_avoids_hosts_with_devices():
    roost = roost_with(host("rich", facts=DEVICES), host("plain"))
    decision = roost.decide(small_request())
    assert chosen_hosts(decision) == ["plain"]
    assert {scale.weigher for scale in decision.scales} >= {"pci", "cpu", "ram"}


def test_evidence_omits_weighers_without_data():
    decision = roost_with(host("a"), host("b")).decide(small_request())
    assert {scale.weigher for scale in decision.scales}.isdisjoint({"pci", "metrics", "image_properties"})


def test_host_with_the_lower_reported_load_is_chosen():
    assert chosen_hosts(
        roost_with(host("a", facts=BUSY), host("b", facts=IDLE), settings=BY_LOAD).decide(small_request())
    ) == ["b"]


def test_missing_required_metric_fails_only_that_request():
    fleet = merge_fleets(host("a", facts=BUSY), host("b"), host("c", facts=IDLE))
    roost = roost_with(fleet, settings=BY_LOAD)
    before = digest(roost.state)
    with pytest.raises(ComputeHostMetricNotFound, match=r"Metric load .* node b\.b\."):
        roost.decide(small_request(count=3))
    assert digest(roost.state) == before
    error, other = roost.outcomes([small_request(), small_request(force_hosts=("c",))])
    assert isinstance(error, ComputeHostMetricNotFound)
    assert chosen_hosts(other) == ["c"]
    assert instances_by_host(roost.state) == [0.0, 0.0, 1.0]


class Squeamish:
    """A weigher that fails for hosts with instances."""

    name = nova_name = "squeamish"
    section = "filter_scheduler"
    options = NoOptions
    aggregate_key = "squeamish_weight_multiplier"
    minval = maxval = None
    sign = multiplier = 1.0

    def __init__(self, options):
        pass

    def concerns(self, spec):
        """Return True."""
        return True

    def raw(self, hosts, spec):
        """Return NaN for hosts with instances, 1.0 for others."""
        return np.where(hosts.column("num_instances") > 0, np.nan, 1.0)

    def unweighable(self, hosts, spec):
        """Return an error that names the host."""
        return NotFound("metric", hosts.name(0))


def test_weigher_error_on_a_later_instance_undoes_earlier_ones():
    settings = read_settings(f'[filter_scheduler]\nweight_classes = ["{__name__}.Squeamish"]')
    roost = roost_with(hosts(3), settings=settings)
    before = digest(roost.state)
    with pytest.raises(NotFound, match="no such metric: h0"):
        roost.decide(small_request(count=2))
    assert digest(roost.state) == before
    assert chosen_hosts(roost.decide(small_request())) == ["h0"]


def test_last_remaining_host_needs_no_metric():
    decision = roost_with(host("a", facts=BUSY), host("b"), settings=BY_LOAD).decide(small_request(ignore_hosts=("a",)))
    assert chosen_hosts(decision) == ["b"]


@pytest.mark.parametrize(
    ("key", "value", "is_read"),
    [
        ("ram_weight_multiplier", "1e1", True),
        ("ram_weight_multiplier", "much", False),
        ("build_failure_weight_multiplier", "", False),
        ("cpu_weight_multiplier", "nan", False),
        ("pci_weight_multiplier", "x", False),
    ],
)
def test_invalid_multiplier_of_an_aggregate_is_a_warning(key, value, is_read):
    roost = roost_with(aggregate("x", **{key: value}), host("a", aggregates=["x"]), host("b"))
    warnings = roost.decide(small_request()).warnings
    expected = f"aggregate metadata {key}={value!r} of x is not a valid number; the default holds for its hosts"
    assert warnings == ([] if is_read else [expected])


def debian_request(**fields) -> Request:
    """Return a request for an instance of a Debian image."""
    image = Image(id="d", properties={"os_distro": "debian"})
    return Request(flavor=Flavor(name="f", vcpus=1, memory_mb=1), image=image, **fields)


@pytest.mark.parametrize("is_reloaded", [False, True])
def test_instances_gather_on_hosts_with_similar_images(is_reloaded):
    store = MemoryStore()
    roost = roost_with(host("a"), host("b"), host("c"), store=store, settings=BY_IMAGE)
    roost.decide(debian_request(force_hosts=("b",)))
    if is_reloaded:
        roost = roost_on(store, settings=BY_IMAGE)
    decision = roost.decide(debian_request(count=3))
    assert chosen_hosts(decision) == ["b"] * 3
    assert instances_by_host(roost.state) == [0.0, 4.0, 0.0]
    assert chosen_hosts(roost.decide(small_request())) != ["b"]
    roost.work([Departure(instance_uuids=tuple(pick.instance_uuid for pick in decision.picks))])
    assert instances_by_host(roost.state)[1] == 1.0
    last = roost.decide(debian_request())
    assert chosen_hosts(last) == ["b"]
    for each in (decision, last):
        assert roost.replay(each.uuid).is_same
