"""Nova's own client of its scheduler, for the Python of the reference: one JSON request per line in, one result out."""

import json
import logging
import sys
import traceback
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

from nova import config, context, exception, objects  # noqa: E402
from nova.scheduler import rpcapi, utils  # noqa: E402
from nova.virt import hardware  # noqa: E402
from oslo_serialization import jsonutils  # noqa: E402


def group_of(data):
    """Return a server group."""
    return objects.InstanceGroup(name="a-group", policies=[data["policy"]], **{"hosts": [], **data})


def spec_of(data):
    """Return a request as Nova's API builds it."""
    flavor = objects.Flavor(
        name="a-flavor", flavorid="1", root_gb=1, ephemeral_gb=0, swap=0, id=1, **{"extra_specs": {}, **data["flavor"]}
    )
    properties = objects.ImageMetaProps.from_dict(data.get("image", {}))
    image = objects.ImageMeta(id="6d8c9c1e-5b62-4b32-8d0e-6d6f6e2f1f10", disk_format="raw", properties=properties)
    devices = [
        objects.InstancePCIRequest(is_new=False, requester_id=None, numa_policy=None, **each)
        for each in data.get("devices", ())
    ]
    groups = [
        objects.RequestGroup(
            use_same_provider=True,
            required_traits=set(),
            forbidden_traits=set(),
            aggregates=[],
            forbidden_aggregates=set(),
            in_tree=None,
            **each,
        )
        for each in data.get("groups", ())
    ]
    destination = data.get("destination")
    return objects.RequestSpec(
        flavor=flavor,
        image=image,
        instance_uuid=data["uuids"][0],
        num_instances=len(data["uuids"]),
        project_id="a-project",
        user_id="a-user",
        availability_zone=None,
        numa_topology=hardware.numa_get_constraints(flavor, image),
        pci_requests=objects.InstancePCIRequests(requests=devices),
        ignore_hosts=data.get("ignore_hosts"),
        force_hosts=data.get("force_hosts"),
        force_nodes=None,
        instance_group=group_of(data["group"]) if "group" in data else None,
        requested_destination=objects.Destination(**destination) if destination else None,
        scheduler_hints=data.get("hints", {}),
        security_groups=objects.SecurityGroupList(objects=[]),
        network_metadata=objects.NetworkMetadata(physnets=set(), tunneled=False),
        requested_resources=groups,
        request_level_params=objects.RequestLevelParams(),
        requested_networks=objects.NetworkRequestList(objects=[]),
        is_bfv=False,
    )


def facts_of(selection):
    """Return a selection as Nova sees it."""
    assert isinstance(selection, objects.Selection)
    return {
        "host": selection.service_host,
        "node": selection.nodename,
        "cell": selection.cell_uuid,
        "provider": selection.compute_node_uuid,
        "zone": selection.availability_zone,
        "claim": jsonutils.loads(selection.allocation_request),
        "version": selection.allocation_request_version,
        "limits": selection.limits.to_dict(),
        "dict": selection.to_dict(),
    }


def run(client, data):
    """Call the scheduler; return the selections with the mappings that Nova reads from them, or the error."""
    spec = spec_of(data)
    try:
        found = client.select_destinations(context.get_admin_context(), spec, data["uuids"], True, True)
    except exception.NoValidHost as error:
        return {"error": type(error).__name__, "text": str(error), "kwargs": error.kwargs}
    utils.fill_provider_mapping(spec, found[0][0])
    providers = {group.requester_id: group.provider_uuids for group in spec.requested_resources}
    return {"selections": [[facts_of(each) for each in one] for one in found], "providers": providers}


def main():
    """Serve requests until the end of the input."""
    config.parse_args(["nova", "--config-file", sys.argv[1]])  # It also prepares the message queue.
    objects.register_all()
    client = rpcapi.SchedulerAPI()
    for line in sys.stdin:
        try:
            result = run(client, json.loads(line))
        except Exception:  # noqa: BLE001  # The test shows it.
            result = {"error": traceback.format_exc()}
        print("result " + json.dumps(result, default=repr), flush=True)


main()
