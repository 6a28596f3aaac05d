"""Columns of a compute node as the objects of the reference nova write them."""

import json
import subprocess

from tests.differential.scheduler import nova

# Run with the Python of the reference. The topology and the pools have every field of every version.
_SCRIPT = """
import warnings
warnings.simplefilter("ignore")
import datetime, json, logging
logging.disable(logging.CRITICAL)
from nova import objects
from nova.objects import fields, numa, monitor_metric, network_metadata
from oslo_serialization import jsonutils
objects.register_all()
def cell(number, **more):
    return numa.NUMACell(
        id=number, cpuset={0 + 8 * number, 1 + 8 * number}, pcpuset={2 + 8 * number, 3 + 8 * number}, memory=4096,
        cpu_usage=3, memory_usage=1024, pinned_cpus={2 + 8 * number},
        siblings=[{0 + 8 * number, 2 + 8 * number}, {1 + 8 * number, 3 + 8 * number}],
        mempages=[numa.NUMAPagesTopology(size_kb=4, total=1000, used=0),
                  numa.NUMAPagesTopology(size_kb=2048, total=512, used=10, reserved=2)], **more)
topology = numa.NUMATopology(cells=[
    cell(0, socket=0, network_metadata=network_metadata.NetworkMetadata(physnets={"net2", "net1"}, tunneled=True)),
    cell(1, socket=None, network_metadata=network_metadata.NetworkMetadata(physnets=set(), tunneled=False)),
])
pools = objects.PciDevicePoolList(objects=[
    objects.PciDevicePool(vendor_id="8086", product_id="154c", numa_node=1, count=7, tags={
        "dev_type": "type-VF", "address": "0000:81:00.0", "physical_network": "net1", "remote_managed": "false",
        "parent_ifname": "ens1", "rp_uuid": "7b1f3c1e-0d6f-4c5e-9f4a-2f4fb5a3b0aa"}),
    objects.PciDevicePool(vendor_id="10de", product_id="1db4", numa_node=None, count=1, tags={"dev_type": "type-PCI"}),
])
now = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
metrics = monitor_metric.MonitorMetricList(objects=[
    monitor_metric.MonitorMetric(name="cpu.percent", value=29, timestamp=now, source="libvirt"),
    monitor_metric.MonitorMetric(name="cpu.frequency", value=1600, timestamp=now, source="libvirt"),
])
read = monitor_metric.MonitorMetricList.from_json(jsonutils.dumps(metrics.to_list()))
print(json.dumps({
    "numa_topology": topology._to_json(),
    "pci_stats": jsonutils.dumps(pools.obj_to_primitive()),
    "metrics": jsonutils.dumps(metrics.to_list()),
    "read_metrics": {each.name: each.value for each in read},
}))
"""


def write_columns():
    """Return columns by name, and ``read_metrics``, the metrics that nova reads again; None: it is not installed."""
    program = nova.python()
    if program is None:
        return None
    found = subprocess.run([program, "-I", "-c", _SCRIPT], check=True, capture_output=True, text=True)
    return json.loads(found.stdout.splitlines()[-1])
