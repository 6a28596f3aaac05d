"""Requests as plug-ins read them: the fields of Nova's RequestSpec, and the properties of Icehouse."""

import pytest

from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.scheduler.filters import BaseHostFilter
from roost.compat.scheduler.host_manager import HostManager, HostState
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Destination, Network, Request

FLAVOR = Flavor(name="small", vcpus=1, memory_mb=512, extra_specs={"acme:foo": "bar"})


def spec_of(**request: object) -> RequestSpec:
    return RequestSpec.from_request(Request(flavor=FLAVOR, **request))


def test_field_is_in_the_request_spec_only_when_set():
    spec = spec_of(availability_zone="az1")
    assert "scheduler_hints" in spec
    assert "availability_zone" in spec
    assert "requested_destination" not in spec
    assert "color" not in spec
    assert spec.obj_attr_is_set("flavor")
    assert "extra_specs" in spec.flavor
    assert spec.flavor.flavorid == "small"


def test_hints_are_lists_and_a_rebuild_check_is_recognised():
    spec = spec_of(hints={"_nova_check_type": "rebuild", "group": ["a", "b"]})
    assert spec.scheduler_hints == {"_nova_check_type": ["rebuild"], "group": ["a", "b"]}
    assert spec.is_rebuild_check


def test_destination_has_a_cell_and_converts_back_unchanged():
    destination = Destination(host="h", cell="c1", aggregates=(frozenset({"x", "y"}),), allow_cross_cell_move=True)
    spec = spec_of(destination=destination)
    assert "cell" in spec.requested_destination
    assert spec.requested_destination.cell.uuid == "c1"
    assert spec.requested_destination.aggregates == ["x,y"]
    assert spec.to_request().destination == destination


def test_image_properties_are_attributes_in_canonical_form():
    image = Image(id="i", properties={"architecture": "AMD64", "hw_cpu_sockets": "02", "color": "red"})
    spec = spec_of(image=image)
    properties = spec.image.properties
    assert spec.get("request_spec")["image"]["properties"]["color"] == "red"
    assert spec.to_request().image.properties["color"] == "red"
    assert (properties.hw_architecture, properties.get("hw_cpu_sockets"), properties.os_distro) == ("x86_64", 2, None)
    assert properties.to_dict() == {"hw_architecture": "x86_64", "hw_cpu_sockets": 2}
    assert spec_of().image.properties.get("hw_architecture", "x") == "x"


def test_network_metadata_has_physical_networks_and_tunnels():
    spec = spec_of(networks=(Network(physnet="p1"), Network(is_tunneled=True)))
    assert (spec.network_metadata.physnets, spec.network_metadata.tunneled) == ({"p1"}, True)


def test_clone_of_a_request_spec_is_independent():
    spec = spec_of(hints={"a": "b"})
    copy = spec.obj_clone()
    copy.limits["vcpu"] = 1
    assert (spec.limits, copy.limits) == ({}, {"vcpu": 1})


@pytest.mark.shows("S187")
def test_request_spec_is_also_the_filter_properties_of_icehouse():
    spec = spec_of(hints={"a": "b"}, project_id="p")
    assert spec.get("instance_type")["memory_mb"] == 512
    assert spec["request_spec"]["instance_properties"]["project_id"] == "p"
    assert "instance_type" in spec
    assert spec.get("retry", "none") == "none"
    with pytest.raises(KeyError, match="color"):
        spec["color"]


def test_group_adds_hosts_and_policies_to_the_filter_properties():
    spec = RequestSpec(flavor=FLAVOR, instance_group=InstanceGroup(policy="affinity", hosts=["h1"]))
    assert (spec.get("group_hosts"), spec.get("group_policies")) == ({"h1"}, {"affinity"})


class IcehouseRam(BaseHostFilter):
    """A filter in the style of the founding document of Icehouse."""

    def host_passes(self, host_state, filter_properties):
        """Compare free memory with the instance type, and read a property of the caller."""
        instance_type = filter_properties.get("instance_type")
        assert filter_properties.get("color") == "red"
        return host_state.free_ram_mb >= instance_type["memory_mb"]


@pytest.mark.shows("S187")
def test_icehouse_filter_runs_in_a_host_manager():
    hosts = [HostState("a", "a", free_ram_mb=100), HostState("b", "b", free_ram_mb=600)]
    manager = HostManager(lambda: hosts, filters=[IcehouseRam])
    properties = {"instance_type": {"name": "small", "memory_mb": 512}, "color": "red"}
    assert [host.host for host in manager.get_filtered_hosts(hosts, properties)] == ["b"]
