"""Requests as plug-ins read them: the fields of Nova's RequestSpec, and the properties of Icehouse."""

import pytest

from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.scheduler.filters import BaseHostFilter
from roost.compat.scheduler.host_manager import HostManager, HostState
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Destination, Network, Request

FLAVOR = Flavor(name="small", vcpus=1, memory_mb=512, extra_specs={"acme:foo": "bar"})


def shown(**request: object) -> RequestSpec:
    return RequestSpec.from_request(Request(flavor=FLAVOR, **request))


def test_a_field_is_in_a_request_when_it_is_set():
    wanted = shown(availability_zone="az1")
    assert "scheduler_hints" in wanted
    assert "availability_zone" in wanted
    assert "requested_destination" not in wanted
    assert "color" not in wanted
    assert wanted.obj_attr_is_set("flavor")
    assert "extra_specs" in wanted.flavor
    assert wanted.flavor.flavorid == "small"


def test_a_hint_is_a_list_of_its_values_and_a_check_for_a_rebuild_is_noticed():
    wanted = shown(hints={"_nova_check_type": "rebuild", "group": ["a", "b"]})
    assert wanted.scheduler_hints == {"_nova_check_type": ["rebuild"], "group": ["a", "b"]}
    assert wanted.is_rebuild_check


def test_a_destination_has_a_cell_with_a_uuid_and_comes_back_as_it_was():
    going = Destination(host="h", cell="c1", aggregates=(frozenset({"x", "y"}),), allow_cross_cell_move=True)
    wanted = shown(destination=going)
    assert "cell" in wanted.requested_destination
    assert wanted.requested_destination.cell.uuid == "c1"
    assert wanted.requested_destination.aggregates == ["x,y"]
    assert wanted.to_request().destination == going


def test_an_image_has_its_properties_as_attributes_in_their_one_spelling():
    image = Image(id="i", properties={"architecture": "AMD64", "hw_cpu_sockets": "02", "color": "red"})
    wanted = shown(image=image)
    properties = wanted.image.properties
    assert wanted.get("request_spec")["image"]["properties"]["color"] == "red"
    assert wanted.to_request().image.properties["color"] == "red"
    assert (properties.hw_architecture, properties.get("hw_cpu_sockets"), properties.os_distro) == ("x86_64", 2, None)
    assert properties.to_dict() == {"hw_architecture": "x86_64", "hw_cpu_sockets": 2}
    assert shown().image.properties.get("hw_architecture", "x") == "x"


def test_networks_of_a_request_are_physical_networks_and_tunnels():
    wanted = shown(networks=(Network(physnet="p1"), Network(is_tunneled=True)))
    assert (wanted.network_metadata.physnets, wanted.network_metadata.tunneled) == ({"p1"}, True)


def test_a_copy_of_a_request_can_be_changed():
    wanted = shown(hints={"a": "b"})
    copy = wanted.obj_clone()
    copy.limits["vcpu"] = 1
    assert (wanted.limits, copy.limits) == ({}, {"vcpu": 1})


@pytest.mark.shows("S187")
def test_a_request_is_also_the_table_that_filters_of_icehouse_read():
    wanted = shown(hints={"a": "b"}, project_id="p")
    assert wanted.get("instance_type")["memory_mb"] == 512
    assert wanted["request_spec"]["instance_properties"]["project_id"] == "p"
    assert "instance_type" in wanted
    assert wanted.get("retry", "none") == "none"
    with pytest.raises(KeyError, match="color"):
        wanted["color"]


def test_a_group_gives_the_table_its_hosts_and_policies():
    wanted = RequestSpec(flavor=FLAVOR, instance_group=InstanceGroup(policy="affinity", hosts=["h1"]))
    assert (wanted.get("group_hosts"), wanted.get("group_policies")) == ({"h1"}, {"affinity"})


class IcehouseRam(BaseHostFilter):
    """A filter as the founding document of Icehouse writes one."""

    def host_passes(self, host_state, filter_properties):
        """Compare free memory with the instance type, and see what a caller put into the table."""
        instance_type = filter_properties.get("instance_type")
        assert filter_properties.get("color") == "red"
        return host_state.free_ram_mb >= instance_type["memory_mb"]


@pytest.mark.shows("S187")
def test_a_filter_of_icehouse_judges_in_a_host_manager():
    hosts = [HostState("a", "a", free_ram_mb=100), HostState("b", "b", free_ram_mb=600)]
    manager = HostManager(lambda: hosts, filters=[IcehouseRam])
    properties = {"instance_type": {"name": "small", "memory_mb": 512}, "color": "red"}
    assert [host.host for host in manager.get_filtered_hosts(hosts, properties)] == ["b"]
