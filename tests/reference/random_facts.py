"""Hypothesis strategies for host facts."""

from hypothesis import strategies as st

from roost.model.host import HostFacts, PciPool

pools = st.builds(PciPool, vendor_id=st.just("8086"), product_id=st.sampled_from("ab"), count=st.integers(0, 60))
facts = st.builds(
    HostFacts,
    vcpus_total=st.integers(0, 12),
    hypervisor_type=st.sampled_from(["", "QEMU"]),
    hypervisor_version=st.sampled_from([0, 4001000, 6002000]),
    supported_instances=st.sampled_from(
        [(), (("x86_64", "kvm", "hvm"),), (("i686", "kvm", "hvm"), ("x86_64", "xen", "xen"))]
    ),
    cpu_info=st.sampled_from(
        [{}, {"arch": "x86_64"}, {"arch": "ab", "topology": {"cores": 2}, "features": ["a", "b"]}]
    ),
    stats=st.sampled_from([{}, {"rank": "1"}, {"rank": "a", "hypervisor_type": "b"}]),
    num_io_ops=st.integers(0, 12),
    failed_builds=st.integers(0, 3),
    cell=st.sampled_from(["", "a", "b"]),
    metrics=st.dictionaries(st.sampled_from(["load", "heat", "noise"]), st.integers(-3, 9).map(lambda n: n / 4)),
    pci_pools=st.lists(pools, max_size=3).map(tuple),
    rack=st.sampled_from(["", "r1", "r2", "r3"]),
    is_disabled=st.booleans(),
    is_forced_down=st.booleans(),
    reported_at_s=st.sampled_from([None, 939.0, 940.0, 1000.0, 1060.0, 1061.0]),
)
