"""The rules and their slow twins say the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.model.host import HostFacts, PciPool
from roost.scheduler import operators
from roost.scheduler.filters.compute import Compute, ComputeOptions
from roost.scheduler.filters.compute_capabilities import ComputeCapabilities
from roost.scheduler.filters.fault_domain import FaultDomain
from roost.scheduler.filters.image_properties import ImageProperties, ImagePropertiesOptions
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinity
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinity
from roost.scheduler.places import place_number
from roost.scheduler.rules import NoOptions
from tests.fleets import COLUMNS_OF_COUNTS, fleet, group, hosts_of, spec
from tests.reference import rules

NAMES = ("=", "==", "!=", ">=", "<=", "<", "s==", "s!=", "s<", "s<=", "s>", "s>=", "<in>", "<all-in>", "<or>", ">=5")
words = st.sampled_from(["", "a", "b", "ab", "1", "2", "10", "-1", "1.5", "<or>", "QEMU", "x86_64"])
wishes = st.builds(
    lambda first, rest: " ".join([first, *rest]), st.sampled_from(NAMES) | words, st.lists(words, max_size=4)
)

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


@st.composite
def fleets(draw):
    """Give up to six hosts that differ."""
    state = fleet(*draw(st.lists(facts, min_size=1, max_size=6)))
    for row in range(len(state.hosts)):
        for name in COLUMNS_OF_COUNTS:
            state.hosts.columns[name].data[row] = draw(st.integers(0, 12))
        state.hosts.derive(row)
    return state


def agree(rule, state, wanted, twin):
    """Compare a filter with its twin, host by host."""
    verdicts = rule.keep(hosts_of(state), wanted).tolist() if rule.concerns(wanted) else [True] * len(state.hosts)
    assert verdicts == [bool(twin(state, row, wanted)) for row in range(len(state.hosts))]


@given(st.none() | words, wishes)
def test_operators(value, wanted):
    try:
        answer = rules.match(value, wanted)
    except ValueError:
        with pytest.raises(ValueError, match="could not convert"):
            operators.match(value, wanted)
        assert not operators.matches(value, wanted)
    else:
        assert operators.match(value, wanted) is answer


@given(st.lists(st.integers(-3, 12)), wishes)
def test_operators_on_columns(values, wanted):
    verdicts = operators.match_numbers(np.array(values, dtype=np.float64), wanted).tolist()
    assert verdicts == [operators.matches(str(value), wanted) for value in values]


@given(fleets(), st.sampled_from([0, 60, 61]))
def test_compute(state, down_time_s):
    rule = Compute(ComputeOptions(service_down_time=down_time_s))
    agree(rule, state, spec(now_s=1000.0), lambda *case: rules.compute(*case, down_time_s=down_time_s))


@given(fleets(), st.data())
def test_verdicts_of_compute_hold_as_long_as_it_says(state, data):
    rule = Compute(ComputeOptions(service_down_time=60))
    until_s = rule.holds_until_s(hosts_of(state), spec(now_s=1000.0))
    later_s = data.draw(st.floats(1000.0, min(until_s, 2000.0)))
    now, later = (rule.keep(hosts_of(state), spec(now_s=at_s)).tolist() for at_s in (1000.0, later_s))
    assert now == later


@given(
    fleets(),
    st.dictionaries(
        st.sampled_from(
            [
                "hypervisor_type",
                "hypervisor_version",
                "rank",
                "free_ram_mb",
                "num_instances",
                "vcpus_used",
                "num_io_ops",
                "host",
                "nobody",
                "hw:other",
                "capabilities:cpu_info:arch",
                "capabilities:cpu_info:topology:cores",
                "capabilities:cpu_info:features",
                "capabilities:rank",
                "capabilities:vcpus_total",
                "capabilities:host:a",
            ]
        ),
        wishes,
        max_size=3,
    ),
)
def test_compute_capabilities(state, extra_specs):
    agree(ComputeCapabilities(NoOptions()), state, spec(extra_specs), rules.compute_capabilities)


@given(
    fleets(),
    st.fixed_dictionaries(
        {},
        optional={
            "hw_architecture": st.sampled_from(["x86_64", "i686", "ppc64"]),
            "img_hv_type": st.sampled_from(["kvm", "xen"]),
            "hw_vm_mode": st.sampled_from(["hvm", "xen"]),
            "img_hv_requested_version": st.sampled_from([">=4.1", ">=4.1.1", ">=6"]),
        },
    ),
)
def test_image_properties(state, properties):
    rule = ImageProperties(ImagePropertiesOptions())
    agree(rule, state, spec(image=properties), rules.image_properties)


@given(fleets(), st.dictionaries(st.integers(0, 5), st.integers(1, 3)), st.integers(1, 3))
def test_server_groups(state, members, limit):
    members = {row: count for row, count in members.items() if row < len(state.hosts)}
    apart, together = (spec(group=group(policy, members, limit=limit)) for policy in ("anti-affinity", "affinity"))
    agree(ServerGroupAntiAffinity(NoOptions()), state, apart, rules.server_group_anti_affinity)
    agree(ServerGroupAffinity(NoOptions()), state, together, rules.server_group_affinity)


@given(fleets(), st.dictionaries(st.sampled_from(["r1", "r2", "r9"]), st.sampled_from("ab")), st.sampled_from("ab"))
def test_fault_domain(state, places, domain):
    members = group("fault-domain")
    members.places.update({place_number(rack): (place_number(holder), 1) for rack, holder in places.items()})
    wanted = spec(group=members, hints={"fault_domain": domain})
    agree(FaultDomain(NoOptions()), state, wanted, lambda *case: rules.fault_domain(*case, place_number))
