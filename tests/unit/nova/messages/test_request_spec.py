import msgspec
import pytest

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.group import ServerGroup
from roost.model.image import Image
from roost.model.request import Destination, Network, Request, ResourceGroup, Retry
from roost.nova.messages.request_spec import RequestedNetwork, read_request_spec
from tests.support.fleets.named_uuids import uuid_named
from tests.support.nova_messages import (
    cell_mapping,
    destination,
    flavor,
    image,
    instance_group,
    nova_object,
    port_device,
    request_spec,
    requested_networks,
)

ONE, TWO = uuid_named("one"), uuid_named("two")
IMAGE = "6d8c9c1e-5b62-4b32-8d0e-6d6f6e2f1f10"


def read(*uuids, **fields):
    return read_request_spec(request_spec(**fields), list(uuids) or None)


def test_request_of_a_new_server_has_its_flavor_image_and_owner():
    found = read(ONE)
    assert found.request == Request(
        flavor=Flavor(name="tiny", vcpus=1, memory_mb=64),
        image=Image(id=IMAGE, disk_format="raw"),
        instance_uuids=(ONE,),
        project_id="a-project",
        user_id="a-user",
    )
    assert (found.group, found.is_rebuild) == (None, False)


def test_number_of_instances_is_that_of_the_uuids():
    assert read(ONE, TWO, num_instances=1).request.count == 2
    assert read(num_instances=3).request.count == 3


def test_fields_that_are_not_set_have_defaults():
    message = nova_object("RequestSpec", "1.0", flavor=flavor(), instance_uuid=ONE)
    assert read_request_spec(message, [ONE]).request == Request(
        flavor=Flavor(name="tiny", vcpus=1, memory_mb=64), instance_uuids=(ONE,)
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"availability_zone": "east"}, {"availability_zone": "east"}),
        ({"ignore_hosts": ["a", "b"]}, {"ignore_hosts": ("a", "b")}),
        ({"force_hosts": ["a"], "force_nodes": ["n"]}, {"force_hosts": ("a",), "force_nodes": ("n",)}),
        ({"scheduler_hints": {"same_host": [ONE], "k": "v"}}, {"hints": {"same_host": [ONE], "k": ["v"]}}),
        ({"is_bfv": True}, {"is_bfv": True}),
        (
            {"requested_destination": destination(host="a", node=None)},
            {"destination": Destination(host="a")},
        ),
        (
            {"requested_destination": destination(aggregates=[f"{ONE},{TWO}", TWO], forbidden_aggregates=[ONE])},
            {
                "destination": Destination(
                    aggregates=(frozenset({ONE, TWO}), frozenset({TWO})), forbidden_aggregates=frozenset({ONE})
                )
            },
        ),
        (
            {"network_metadata": nova_object("NetworkMetadata", "1.0", physnets=["b", "a"], tunneled=True)},
            {"networks": (Network(physnet="a"), Network(physnet="b"), Network(is_tunneled=True))},
        ),
        (
            {
                "request_level_params": nova_object(
                    "RequestLevelParams", "1.1", root_required=["A"], root_forbidden=["B"], same_subtree=[["_x", "_y"]]
                )
            },
            {
                "root_required": frozenset({"A"}),
                "root_forbidden": frozenset({"B"}),
                "same_subtree": (frozenset({"_x", "_y"}),),
            },
        ),
        (
            {
                "retry": nova_object(
                    "SchedulerRetries",
                    "1.1",
                    num_attempts=2,
                    hosts=nova_object(
                        "ComputeNodeList",
                        "1.19",
                        objects=[nova_object("ComputeNode", "1.19", host="a", hypervisor_hostname="n")],
                    ),
                )
            },
            {"retry": Retry(attempts=2, hosts=(("a", "n"),))},
        ),
    ],
)
def test_field_of_the_message_becomes_a_field_of_the_request(fields, expected):
    request = read(ONE, **fields).request
    assert {name: getattr(request, name) for name in expected} == expected


def test_resource_groups_of_ports_keep_their_requesters_as_suffixes():
    group = nova_object(
        "RequestGroup",
        "1.3",
        use_same_provider=True,
        requester_id=ONE,
        resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1000},
        required_traits=["CUSTOM_B", "CUSTOM_A"],
        forbidden_traits=["CUSTOM_C"],
        aggregates=[[TWO]],
        in_tree=None,
    )
    other = nova_object("RequestGroup", "1.3", use_same_provider=True, requester_id=None, resources={"VGPU": 1})
    assert read(ONE, requested_resources=[other, group]).request.groups == (
        ResourceGroup(suffix="1", resources={"VGPU": 1}),
        ResourceGroup(
            suffix=ONE,
            resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1000},
            required=(frozenset({"CUSTOM_A"}), frozenset({"CUSTOM_B"})),
            forbidden=frozenset({"CUSTOM_C"}),
            member_of=(frozenset({TWO}),),
        ),
    )


def test_device_requests_keep_their_identities_and_sources():
    requests = [
        nova_object(
            "InstancePCIRequest",
            "1.4",
            count=2,
            spec=[{"vendor_id": "8086"}],
            alias_name="gpu",
            request_id=ONE,
            numa_policy=None,
        ),
        nova_object(
            "InstancePCIRequest",
            "1.4",
            count=1,
            spec=[{"physical_network": "net1"}],
            alias_name=None,
            request_id=TWO,
            numa_policy="required",
        ),
    ]
    found = read(ONE, pci_requests=nova_object("InstancePCIRequests", "1.1", requests=requests)).request.pci_requests
    assert [(each.source, each.name, each.request_id, each.count, each.numa_policy) for each in found] == [
        ("flavor", "gpu", ONE, 2, "legacy"),
        ("port", "", TWO, 1, "required"),
    ]


def test_image_properties_are_spelt_as_in_the_image_service():
    converted = image(
        hw_numa_mem=[1024, 2048],
        hw_numa_cpus=[[0, 1], [2]],
        hw_boot_menu=True,
        hw_cpu_sockets=2,
        traits_required=["A", "B"],
        os_distro="debian",
        hw_machine_type=None,
    )
    assert read(ONE, image=converted).request.image.properties == {
        "hw_numa_mem.0": "1024",
        "hw_numa_mem.1": "2048",
        "hw_numa_cpus.0": "0,1",
        "hw_numa_cpus.1": "2",
        "hw_boot_menu": "True",
        "hw_cpu_sockets": "2",
        "traits_required": "A,B",
        "os_distro": "debian",
    }


def test_server_group_has_its_limit_and_members():
    found = read(ONE, instance_group=instance_group(TWO, "anti-affinity", ONE, TWO, max_server_per_host="3"))
    assert found.group.group == ServerGroup(uuid=TWO, name="a-group", policy="anti-affinity", max_server_per_host=3)
    assert found.group.members == (ONE, TWO)
    assert found.request.group == TWO


def test_server_group_of_an_old_cloud_without_a_policy_is_ignored():
    assert read(ONE, instance_group=instance_group(TWO, "legacy", ONE)).group is None


def test_check_before_a_rebuild_is_recognised():
    assert read(ONE, scheduler_hints={"_nova_check_type": ["rebuild"]}).is_rebuild


def test_requested_networks_are_ports_and_networks():
    networks = requested_networks(
        {"network_id": ONE}, {"network_id": TWO, "port_id": ONE}, {"network_id": "auto"}, {"network_id": "none"}, {}
    )
    assert read(ONE, requested_networks=networks).requested_networks == (
        RequestedNetwork(network=ONE),
        RequestedNetwork(network=TWO, port=ONE),
    )
    assert read(ONE, requested_networks=None).requested_networks == ()


def test_remote_managed_device_of_a_requested_port_is_a_network_of_the_request():
    def networks(*devices, port=ONE):
        requests = nova_object("InstancePCIRequests", "1.1", requests=list(devices))
        found = read(ONE, requested_networks=requested_networks({"port_id": port}), pci_requests=requests)
        return found.request.networks

    managed = port_device(ONE, remote_managed="True")
    assert networks(managed) == (Network(name=f"port {ONE}", is_remote_managed=True),)
    assert networks(managed, port=TWO) == ()
    assert networks(managed, port=None) == ()
    assert networks(port_device(ONE, remote_managed="False"), port_device(None, remote_managed="True")) == ()
    assert networks(port_device(ONE, physical_network="p")) == ()


def test_passwords_of_the_cell_do_not_reach_the_request():
    target = destination(cell=cell_mapping(TWO, password="hunter2"), allow_cross_cell_move=False)
    request = read(ONE, requested_destination=target).request
    assert request.destination == Destination(cell=TWO)
    assert b"hunter2" not in msgspec.json.encode(request)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (None, "must contain an object RequestSpec, got NoneType"),
        ({}, "must contain an object RequestSpec, got None"),
        (nova_object("Flavor", "1.2"), "must contain an object RequestSpec, got Flavor"),
        (nova_object("RequestSpec", "2.0"), "contains RequestSpec 2.0; Roost reads 1.x"),
        (request_spec(flavor=None), "must contain an object Flavor, got NoneType"),
        (request_spec(flavor=flavor(vcpus=-1)), "vcpus must be 0"),
        (request_spec(flavor=flavor(vcpus="many")), "Expected `int`, got `str`"),
        (request_spec(scheduler_hints=["x"]), "RequestSpec of instance"),
        (request_spec(requested_resources={"nova_object.name": "x"}), "must contain an object RequestGroupList, got x"),
        (request_spec(num_instances=-1), "count must be"),
        (request_spec(requested_networks=requested_networks(*[{}] * 1001)), "must have up to 1,000 entries, got 1,001"),
        (request_spec(requested_networks=5), "must contain a list of NetworkRequest, got int"),
    ],
)
def test_malformed_message_is_refused_with_a_reason(message, problem):
    with pytest.raises(BadRequest, match=problem.replace("(", r"\(")):
        read_request_spec(message, None)
