"""Payloads of requests with NUMA cells, devices and secrets; a duel with nova-scheduler compares the common ones."""

import json

import pytest

from roost.errors import BadRequest
from roost.nova.notifications.legacy_payload import build_legacy_payload
from roost.nova.notifications.spec_payload import SpecChanges, build_spec_payload
from tests.support.fleets.named_uuids import uuid_named
from tests.support.nova_messages import cell_mapping, destination, image, nova_object, request_spec

ME, OTHER = uuid_named("me"), uuid_named("other")
CELL = {
    "id": 0,
    "cpuset": [0],
    "pcpuset": [1],
    "cpuset_reserved": None,
    "memory": 512,
    "pagesize": 2048,
    "cpu_pinning_raw": None,
    "cpu_policy": "mixed",
    "cpu_thread_policy": None,
}
DEVICE = {"count": 1, "spec": [{"vendor_id": "8086"}], "alias_name": "a", "request_id": None, "numa_policy": "legacy"}


def fields_of(**fields):
    return request_spec(instance_uuid=ME, **fields)["nova_object.data"]


def versioned(changes=None, **fields):
    """Return the fields of the versioned payload."""
    return build_spec_payload(fields_of(**fields), changes or SpecChanges(), instance_uuid=ME)["nova_object.data"]


def test_cells_and_devices_have_their_versions_and_lack_internal_fields():
    topology = nova_object("VirtCPUTopology", "1.0", sockets=1, cores=1, threads=2)
    cell = nova_object("InstanceNUMACell", "1.6", **CELL, cpu_topology=topology)
    request = nova_object("InstancePCIRequest", "1.4", **DEVICE, is_new=False, requester_id=None)
    found = versioned(
        numa_topology=nova_object("InstanceNUMATopology", "1.3", cells=[cell], emulator_threads_policy="share"),
        pci_requests=nova_object("InstancePCIRequests", "1.1", instance_uuid=OTHER, requests=[request]),
    )
    numa = found["numa_topology"]["nova_object.data"]
    assert (numa["instance_uuid"], numa["emulator_threads_policy"]) == (ME, "share")
    (cell,) = numa["cells"]
    assert cell["nova_object.version"] == "1.2"
    topology = cell["nova_object.data"].pop("cpu_topology")
    assert (topology["nova_object.name"], topology["nova_object.data"]["threads"]) == ("VirtCPUTopologyPayload", 2)
    assert cell["nova_object.data"] == CELL
    devices = found["pci_requests"]["nova_object.data"]
    assert devices["instance_uuid"] == OTHER
    assert [each["nova_object.data"] for each in devices["requests"]] == [DEVICE]


def test_no_payload_has_the_urls_of_a_cell_or_the_secret_of_an_image():
    spec = fields_of(
        requested_destination=destination(host="h", node=None, cell=cell_mapping(OTHER, password="hunter2")),
        image=image(hw_ephemeral_encryption_secret_uuid=OTHER, hw_disk_bus="virtio"),
    )
    found = build_spec_payload(spec, SpecChanges(target=("h", "n")), instance_uuid=ME)
    assert "hunter2" not in json.dumps([found, build_legacy_payload(spec)])
    target = found["nova_object.data"]["requested_destination"]["nova_object.data"]
    assert (target["host"], target["node"]) == ("h", "n")
    assert target["cell"]["nova_object.data"] == {"uuid": OTHER, "name": "cell1", "disabled": False}
    properties = found["nova_object.data"]["image"]["nova_object.data"]["properties"]
    assert properties["nova_object.data"] == {"hw_disk_bus": "virtio"}


def test_filters_add_aggregates_and_create_the_destination():
    changes = SpecChanges(aggregates=("a,b",))
    assert versioned(changes)["requested_destination"]["nova_object.data"] == {"aggregates": ["a,b"]}
    found = versioned(changes, requested_destination=destination(aggregates=["c"]))
    assert found["requested_destination"]["nova_object.data"] == {"aggregates": ["c", "a,b"]}
    assert versioned()["requested_destination"] is None


def test_tries_name_the_nodes():
    node = nova_object("ComputeNode", "1.19", host="h1", hypervisor_hostname="n1")
    hosts = nova_object("ComputeNodeList", "1.17", objects=[node])
    found = versioned(retry=nova_object("SchedulerRetries", "1.1", num_attempts=2, hosts=hosts))
    assert found["retry"]["nova_object.data"] == {"num_attempts": 2, "hosts": ["n1"]}


def test_unversioned_objects_show_attributes_without_the_context_of_the_user():
    request = nova_object("InstancePCIRequest", "1.4", **DEVICE)
    spec = fields_of(pci_requests=nova_object("InstancePCIRequests", "1.1", requests=[request]))
    found = build_legacy_payload(spec)["request_spec"]["instance_properties"]["pci_requests"]
    (shown,) = found.pop("_obj_requests")
    assert found == {"VERSION": "1.1", "_context": None, "_changed_fields": ["requests"]}
    assert (shown["VERSION"], shown["_context"], shown["_obj_alias_name"]) == ("1.4", None, "a")


def test_malformed_object_has_no_payload():
    with pytest.raises(BadRequest, match="must contain an object Flavor"):
        versioned(flavor={"nova_object.name": "Image"})
