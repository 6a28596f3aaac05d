"""NUMA topologies, PCI devices and metrics as the objects of nova write them."""

import json

import pytest

from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.host import PciPool
from roost.nova.database.stored_devices import read_numa_topology, read_pci_pools
from tests.differential.scheduler import nova
from tests.support.missing_programs import skip_test
from tests.support.servers.nova_objects import write_columns

PAGES = (MemoryPages(size_kb=4, total=1000), MemoryPages(size_kb=2048, total=512, used=10, reserved=2))
PROVIDER = "7b1f3c1e-0d6f-4c5e-9f4a-2f4fb5a3b0aa"
TOPOLOGY = NumaTopology(
    cells=(
        NumaCell(
            id=0,
            cpus=(0, 1),
            pcpus=(2, 3),
            memory_mb=4096,
            cpu_usage=3,
            memory_usage=1024,
            pinned_cpus=(2,),
            siblings=((0, 2), (1, 3)),
            mempages=PAGES,
            socket=0,
            physnets=("net1", "net2"),
            is_tunneled=True,
        ),
        NumaCell(
            id=1,
            cpus=(8, 9),
            pcpus=(10, 11),
            memory_mb=4096,
            cpu_usage=3,
            memory_usage=1024,
            pinned_cpus=(10,),
            siblings=((8, 10), (9, 11)),
            mempages=PAGES,
        ),
    )
)
POOLS = (
    PciPool(
        vendor_id="8086",
        product_id="154c",
        dev_type="type-VF",
        numa_node=1,
        address="0000:81:00.0",
        tags={"physical_network": "net1", "remote_managed": "false", "parent_ifname": "ens1"},
        rp_uuids=(PROVIDER,),
        count=7,
    ),
    PciPool(vendor_id="10de", product_id="1db4", count=1),
)


@pytest.fixture(scope="module")
def columns():
    """Return the columns that nova writes."""
    found = write_columns()
    if found is None:
        skip_test(nova.HOW_TO_INSTALL)
    return found


def test_topology_that_nova_writes(columns):
    assert read_numa_topology(columns["numa_topology"]) == TOPOLOGY


def test_pools_that_nova_writes(columns):
    assert read_pci_pools(columns["pci_stats"]) == POOLS


def test_compute_node_that_nova_writes(columns, nova, cell, reader):
    stored = {name: columns[name] for name in ("numa_topology", "pci_stats", "metrics")}
    nova.add_host(cell, "a", **stored)
    (compute,) = reader.read().computes
    assert compute.is_ready
    assert compute.facts.numa == TOPOLOGY
    assert compute.facts.pci_pools == POOLS
    assert compute.facts.metrics == columns["read_metrics"]
    assert set(compute.facts.metrics) == {"cpu.percent", "cpu.frequency"}


def test_topology_of_an_old_compute_lacks_fields():
    cell = {"id": 0, "cpuset": [1, 0], "memory": 512, "siblings": [], "mempages": [], "pinned_cpus": []}
    text = json.dumps({"nova_object.data": {"cells": [{"nova_object.data": cell}]}})
    assert read_numa_topology(text) == NumaTopology(cells=(NumaCell(id=0, cpus=(0, 1), memory_mb=512),))


@pytest.mark.parametrize("text", [None, "", '{"nova_object.data": {"cells": []}}'])
def test_host_without_a_topology(text):
    assert read_numa_topology(text) is None


@pytest.mark.parametrize("text", [None, "", "null", "[]", '{"nova_object.data": {"objects": []}}'])
def test_host_without_devices(text):
    assert read_pci_pools(text) == ()


def test_plain_pools_of_old_computes():
    pool = {"vendor_id": "8086", "product_id": "1", "count": 2, "dev_type": "type-PF", "numa_node": -1, "x": "y"}
    wanted = PciPool(vendor_id="8086", product_id="1", dev_type="type-PF", count=2, tags={"x": "y"})
    assert read_pci_pools(json.dumps([pool])) == read_pci_pools(json.dumps(pool)) == (wanted,)
