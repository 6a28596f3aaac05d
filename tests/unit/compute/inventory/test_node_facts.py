"""Facts of a node: amounts from its driver, and pools of identical devices."""

from roost.compute.inventory.node_facts import facts_of, pool_devices, pools_of
from roost.model.host import HostFacts, PciPool
from roost.model.work.agent_terms import NodeResources, PciDevice

AMOUNTS = {
    "vcpus": 8,
    "memory_mb": 1024,
    "local_gb": 10,
    "vcpus_used": 1,
    "memory_mb_used": 2,
    "local_gb_used": 3,
}


def device(address, product="1", **more):
    """Return a device."""
    return PciDevice(address=address, vendor_id="8086", product_id=product, **more)


def test_facts_copy_the_driver_amounts_without_overcommit():
    resources = NodeResources(
        **AMOUNTS,
        cpu_info={"arch": "x86_64"},
        numa_topology=None,
        hypervisor_type="QEMU",
        hypervisor_version=7,
        supported_instances=(("x86_64", "kvm", "hvm"),),
        stats={"a": "b"},
    )
    assert facts_of(resources, metrics={"cpu.percent": 0.5}, host_ip="10.0.0.1") == HostFacts(
        vcpus_total=8,
        memory_mb=1024,
        local_gb=10,
        cpu_info={"arch": "x86_64"},
        hypervisor_type="QEMU",
        hypervisor_version=7,
        supported_instances=(("x86_64", "kvm", "hvm"),),
        stats={"a": "b"},
        metrics={"cpu.percent": 0.5},
        host_ip="10.0.0.1",
    )


def test_identical_devices_form_one_pool():
    result = pools_of(
        [
            device("a", dev_type="type-VF", numa_node=0, parent_address="p", tags={"physical_network": "n"}),
            device("b", dev_type="type-VF", numa_node=0, parent_address="q", tags={"physical_network": "n"}),
            device("c", dev_type="type-VF", numa_node=1, tags={"physical_network": "n"}),
            device("d", dev_type="type-VF", numa_node=0),
            device("e", "2"),
        ]
    )
    virtual = {"vendor_id": "8086", "product_id": "1", "dev_type": "type-VF"}
    assert result == (
        PciPool(**virtual, numa_node=0, tags={"physical_network": "n"}, count=2),
        PciPool(**virtual, numa_node=1, address="c", tags={"physical_network": "n"}, count=1),
        PciPool(**virtual, numa_node=0, address="d", count=1),
        PciPool(vendor_id="8086", product_id="2", address="e", count=1),
    )
    assert pools_of([]) == ()


def test_devices_of_two_providers_form_two_pools():
    result = pool_devices([device("a"), device("b"), device("c")], providers={"a": "one", "b": "two"})
    assert result.pools == tuple(
        PciPool(vendor_id="8086", product_id="1", address=address, count=1, rp_uuids=providers)
        for address, providers in (("a", ("one",)), ("b", ("two",)), ("c", ()))
    )
    same_provider = pool_devices([device("a"), device("b")], providers={"a": "one", "b": "one"})
    assert ([pool.count for pool in same_provider.pools], same_provider.addresses) == ([2], (("a", "b"),))


def test_ratios_of_the_settings_are_reported():
    resources = NodeResources(**AMOUNTS, cpu_info={}, numa_topology=None)
    assert facts_of(resources, metrics={}).fixed_ratios == {}
    assert facts_of(resources, metrics={}, fixed_ratios={"VCPU": 4.0}).fixed_ratios == {"VCPU": 4.0}
