"""The rules agree with their slow twins."""

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.columns.apply import apply
from roost.model import writes
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts, PciPool
from roost.model.image import Image
from roost.model.request import Request
from roost.model.request import Retry as RetryState
from roost.scheduler.filters.aggregate_core import AggregateCore
from roost.scheduler.filters.aggregate_disk import AggregateDisk
from roost.scheduler.filters.aggregate_image_properties_isolation import (
    AggregateImagePropertiesIsolation,
    AggregateImagePropertiesIsolationOptions,
)
from roost.scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecs
from roost.scheduler.filters.aggregate_io_ops import AggregateIoOps
from roost.scheduler.filters.aggregate_multi_tenancy_isolation import AggregateMultiTenancyIsolation
from roost.scheduler.filters.aggregate_num_instances import AggregateNumInstances
from roost.scheduler.filters.aggregate_ram import AggregateRam
from roost.scheduler.filters.aggregate_type_affinity import AggregateTypeAffinity
from roost.scheduler.filters.availability_zone import AvailabilityZone, AvailabilityZoneOptions
from roost.scheduler.filters.compute import Compute, ComputeOptions
from roost.scheduler.filters.compute_capabilities import ComputeCapabilities
from roost.scheduler.filters.core import Core
from roost.scheduler.filters.different_host import DifferentHost
from roost.scheduler.filters.disk import Disk
from roost.scheduler.filters.fault_domain import FaultDomain
from roost.scheduler.filters.image_properties import ImageProperties, ImagePropertiesOptions
from roost.scheduler.filters.io_ops import IoOps
from roost.scheduler.filters.isolated_hosts import IsolatedHosts, IsolatedHostsOptions
from roost.scheduler.filters.json import Json
from roost.scheduler.filters.metrics import Metrics, MetricsOptions
from roost.scheduler.filters.num_instances import NumInstances
from roost.scheduler.filters.pci_passthrough import PciPassthrough
from roost.scheduler.filters.ram import Ram
from roost.scheduler.filters.retry import Retry
from roost.scheduler.filters.same_host import SameHost
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinity
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinity
from roost.scheduler.filters.simple_cidr_affinity import SimpleCidrAffinity
from roost.scheduler.framework.group_slots import place_number
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support import operators
from roost.scheduler.rule_support.expressions import OPERATORS
from roost.scheduler.rule_support.limits import InstancesOptions, IoOpsOptions
from roost.scheduler.rule_support.overcommit import CoreOptions, DiskOptions, RamOptions
from tests.reference import rules
from tests.reference.random_facts import facts
from tests.support.fleets.fleets import COLUMNS_OF_COUNTS, fleet, group, host_view, spec, uuid_of, uuid_text

NAMES = ("=", "==", "!=", ">=", "<=", "<", "s==", "s!=", "s<", "s<=", "s>", "s>=", "<in>", "<all-in>", "<or>", ">=5")
words = st.sampled_from(["", "a", "b", "ab", "1", "2", "10", "-1", "1.5", "<or>", "QEMU", "x86_64"])
requirements = st.builds(
    lambda first, rest: " ".join([first, *rest]), st.sampled_from(NAMES) | words, st.lists(words, max_size=4)
)


@st.composite
def fleets(draw):
    """Draw up to six different hosts."""
    state = fleet(*draw(st.lists(facts, min_size=1, max_size=6)))
    for row in range(len(state.hosts)):
        for name in COLUMNS_OF_COUNTS:
            state.hosts.columns[name].data[row] = draw(st.integers(0, 12))
        state.hosts.update_derived(row)
    return state


def check_agreement(rule, state, wanted, twin):
    """Compare a filter with its slow twin, host by host."""
    verdicts = rule.keep(host_view(state), wanted).tolist() if rule.concerns(wanted) else [True] * len(state.hosts)
    assert verdicts == [bool(twin(state, row, wanted)) for row in range(len(state.hosts))]


@given(st.none() | words, requirements)
def test_operators(value, wanted):
    try:
        answer = rules.match(value, wanted)
    except ValueError:
        with pytest.raises(ValueError, match="could not convert"):
            operators.match(value, wanted)
        assert not operators.matches(value, wanted)
    else:
        assert operators.match(value, wanted) is answer


@given(st.lists(st.integers(-3, 12)), requirements)
def test_operators_on_columns(values, wanted):
    verdicts = operators.match_numbers(np.array(values, dtype=np.float64), wanted).tolist()
    assert verdicts == [operators.matches(str(value), wanted) for value in values]


@given(fleets(), st.sampled_from([0, 60, 61]))
def test_compute(state, down_time_s):
    rule = Compute(ComputeOptions(service_down_time=down_time_s))
    check_agreement(rule, state, spec(now_s=1000.0), lambda *case: rules.compute(*case, down_time_s=down_time_s))


@given(fleets(), st.data())
def test_compute_verdicts_hold_until_the_stated_time(state, data):
    rule = Compute(ComputeOptions(service_down_time=60))
    until_s = rule.holds_until_s(host_view(state), spec(now_s=1000.0))
    later_s = data.draw(st.floats(1000.0, min(until_s, 2000.0)))
    now, later = (rule.keep(host_view(state), spec(now_s=at_s)).tolist() for at_s in (1000.0, later_s))
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
        requirements,
        max_size=3,
    ),
)
def test_compute_capabilities(state, extra_specs):
    check_agreement(ComputeCapabilities(NoOptions()), state, spec(extra_specs), rules.compute_capabilities)


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
    check_agreement(rule, state, spec(image=properties), rules.image_properties)


@given(fleets(), st.dictionaries(st.integers(0, 5), st.integers(1, 3)), st.integers(1, 3))
def test_server_groups(state, members, limit):
    members = {row: count for row, count in members.items() if row < len(state.hosts)}
    apart, together = (spec(group=group(policy, members, limit=limit)) for policy in ("anti-affinity", "affinity"))
    check_agreement(ServerGroupAntiAffinity(NoOptions()), state, apart, rules.server_group_anti_affinity)
    check_agreement(ServerGroupAffinity(NoOptions()), state, together, rules.server_group_affinity)


@given(fleets(), st.dictionaries(st.sampled_from(["r1", "r2", "r9"]), st.sampled_from("ab")), st.sampled_from("ab"))
def test_fault_domain(state, places, domain):
    members = group("fault-domain")
    members.places.update({place_number(rack): (place_number(holder), 1) for rack, holder in places.items()})
    wanted = spec(group=members, hints={"fault_domain": domain})
    check_agreement(FaultDomain(NoOptions()), state, wanted, lambda *case: rules.fault_domain(*case, place_number))


KEYS = (
    "availability_zone",
    "filter_tenant_id",
    "filter_tenant_id_2",
    "os_distro",
    "ns.os_distro",
    "hw_disk_bus",
    "ssd",
    "instance_type",
    "max_instances_per_host",
    "max_io_ops_per_host",
    "cpu_allocation_ratio",
    "ram_allocation_ratio",
    "disk_allocation_ratio",
)
metadata_values = st.sampled_from(["a", "b", "a, b", "c,a", "", "1", "2", "2.5", "10", "x"])


@st.composite
def fleets_with_aggregates(draw):
    """Draw different hosts in aggregates, with instances, addresses and amounts."""
    metadata = st.dictionaries(st.sampled_from(KEYS), metadata_values, max_size=5)
    memberships = st.tuples(metadata, st.sets(st.integers(0, 4)))
    own = st.builds(
        HostFacts,
        host_ip=st.sampled_from(["", "10.0.0.1", "10.0.0.130", "10.0.1.1", "10.1.0.1"]),
        num_io_ops=st.integers(0, 12),
        metrics=st.dictionaries(st.sampled_from("abc"), st.floats(0, 1)),
    )
    state = fleet(*draw(st.lists(own, min_size=1, max_size=5)), aggregates=draw(st.lists(memberships, max_size=4)))
    for row in range(len(state.hosts)):
        for name in (*COLUMNS_OF_COUNTS, "vcpus_total", "total_usable_ram_mb", "total_usable_disk_gb"):
            state.hosts.columns[name].data[row] = draw(st.integers(0, 12))
        state.hosts.update_derived(row)
    for number in range(1, 5):
        at = draw(st.integers(0, len(state.hosts)))
        if at < len(state.hosts):
            consumer = writes.ConsumerRow(id=number, uuid=uuid_of(number), project_id="", user_id="")
            instance = writes.InstanceRow(number, state.hosts.ids[at], flavor_id=1)
            apply(state, writes.Claim([consumer], [], [instance]))
    return state


texts = st.sampled_from(
    [
        "",
        "a",
        "QEMU",
        "x86_64",
        "host-1",
        "1",
        "$host",
        "$nodename",
        "$hypervisor_type",
        "$host_ip",
        "$nobody",
        "$free_ram_mb",
        "$num_instances",
        "$vcpus_total",
        "$hypervisor_version",
        "$cpu_allocation_ratio",
        "$cpu_info",
        "$cpu_info.arch",
        "$cpu_info.topology.cores",
        "$stats",
        "$stats.rank",
        "$supported_instances",
        "$num_instances.x",
        "$",
    ]
)
literals = (
    st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from([1.5, 2**53 + 1, {}, {"rank": "1"}]) | texts
)
queries = st.recursive(
    st.builds(lambda name, rest: [name, *rest], st.sampled_from(OPERATORS), st.lists(literals, max_size=3))
    | st.just([]),
    lambda inner: st.builds(
        lambda name, rest: [name, *rest], st.sampled_from(OPERATORS), st.lists(inner | literals, max_size=3)
    ),
    max_leaves=5,
)


@given(fleets(), queries, st.booleans())
@settings(max_examples=600)
def test_json(state, query, is_list):
    text = json.dumps(query)
    wanted = spec(hints={"query": [text] if is_list else text})
    check_agreement(Json(NoOptions()), state, wanted, rules.json_query)
    verdicts = Json(NoOptions()).keep(host_view(state), wanted).tolist()
    rows = list(range(len(state.hosts)))[::-2]
    assert Json(NoOptions()).keep(host_view(state, rows), wanted).tolist() == [verdicts[row] for row in rows]


@given(fleets_with_aggregates(), st.sampled_from([None, "", "a", "b, c", "nova"]), st.sampled_from(["a", "b", ""]))
def test_zones_projects_and_flavors_of_aggregates(state, zone, name):
    wanted = spec(availability_zone=zone, project_id=name)
    rule = AvailabilityZone(AvailabilityZoneOptions())
    check_agreement(rule, state, wanted, lambda *case: rules.availability_zone(*case, "nova"))
    check_agreement(AggregateMultiTenancyIsolation(NoOptions()), state, wanted, rules.aggregate_multi_tenancy_isolation)
    of_flavor = Spec(Request(flavor=Flavor(name=name)), now_s=0.0)
    check_agreement(AggregateTypeAffinity(NoOptions()), state, of_flavor, rules.aggregate_type_affinity)


@given(
    fleets_with_aggregates(),
    st.dictionaries(st.sampled_from(["os_distro", "hw_disk_bus"]), metadata_values),
    st.sampled_from(["", "ns"]),
)
def test_image_properties_of_aggregates(state, properties, namespace):
    rule = AggregateImagePropertiesIsolation(
        AggregateImagePropertiesIsolationOptions(aggregate_image_properties_isolation_namespace=namespace)
    )
    prefix = f"{namespace}." if namespace else ""
    twin = rules.aggregate_image_properties_isolation
    check_agreement(rule, state, spec(image=properties), lambda *case: twin(*case, prefix))


@given(
    fleets_with_aggregates(),
    st.dictionaries(
        st.sampled_from(["ssd", "aggregate_instance_extra_specs:ssd", "hw:ssd", "os_distro"]), requirements
    ),
)
def test_extra_specs_of_aggregates(state, extra_specs):
    check_agreement(
        AggregateInstanceExtraSpecs(NoOptions()), state, spec(extra_specs), rules.aggregate_instance_extra_specs
    )


@given(fleets_with_aggregates(), st.integers(1, 12))
def test_limits(state, limit):
    for plain, of_aggregates, options, column in (
        (NumInstances, AggregateNumInstances, InstancesOptions(max_instances_per_host=limit), "num_instances"),
        (IoOps, AggregateIoOps, IoOpsOptions(max_io_ops_per_host=limit), "num_io_ops"),
    ):
        key = options.__struct_fields__[0]
        has = [float(each) for each in state.hosts.column(column)]
        check_agreement(plain(options), state, spec(), lambda _, row, __, has=has: has[row] < limit)
        check_agreement(
            of_aggregates(options),
            state,
            spec(),
            lambda state, row, _, has=has, key=key: has[row] < rules.least(state, row, key, limit, int),
        )


sizes = st.builds(
    Flavor,
    name=st.just("f"),
    vcpus=st.integers(0, 12),
    memory_mb=st.integers(0, 12),
    root_gb=st.integers(0, 6),
    ephemeral_gb=st.integers(0, 6),
    swap=st.integers(0, 1024),
)


@given(fleets_with_aggregates(), sizes, st.sampled_from([0.0, 0.5, 1.0, 1.5, 16.0]))
def test_amounts(state, flavor, ratio):
    wanted = Spec(Request(flavor=flavor), now_s=0.0)
    for plain, of_aggregates, options, twin in (
        (Core, AggregateCore, CoreOptions(cpu_allocation_ratio=ratio), rules.core),
        (Ram, AggregateRam, RamOptions(ram_allocation_ratio=ratio), rules.ram),
        (Disk, AggregateDisk, DiskOptions(disk_allocation_ratio=ratio), rules.disk),
    ):
        key = options.__struct_fields__[0]
        check_agreement(plain(options), state, wanted, lambda *case, twin=twin: twin(*case, ratio))
        check_agreement(
            of_aggregates(options),
            state,
            wanted,
            lambda *case, twin=twin, key=key: twin(*case, rules.least(*case[:2], key, ratio, float)),
        )


@given(fleets_with_aggregates(), st.lists(st.integers(1, 6).map(uuid_text), max_size=3))
def test_same_host_and_different_host(state, uuids):
    check_agreement(
        SameHost(NoOptions()),
        state,
        spec(hints={"same_host": uuids}),
        lambda state, row, _: not uuids or rules.holds(state, row, uuids),
    )
    check_agreement(
        DifferentHost(NoOptions()),
        state,
        spec(hints={"different_host": uuids}),
        lambda state, row, _: not rules.holds(state, row, uuids),
    )


@given(fleets_with_aggregates(), st.sampled_from(["10.0.0.7", "10.0.1.200", "11.0.0.1"]), st.integers(0, 32))
def test_simple_cidr_affinity(state, address, length):
    wanted = spec(hints={"build_near_host_ip": address, "cidr": f"/{length}"})
    check_agreement(SimpleCidrAffinity(NoOptions()), state, wanted, rules.simple_cidr_affinity)


@given(
    fleets_with_aggregates(),
    st.sets(st.sampled_from(["i", "j"])),
    st.sets(st.sampled_from(["host-1", "host-3"])),
    st.booleans(),
    st.sampled_from([None, "i", "k"]),
)
def test_isolated_hosts(state, images, hosts, is_restricted, image):
    options = IsolatedHostsOptions(
        isolated_images=tuple(images),
        isolated_hosts=tuple(hosts),
        restrict_isolated_hosts_to_isolated_images=is_restricted,
    )
    wanted = Spec(Request(flavor=Flavor(name="f"), image=None if image is None else Image(id=image)), now_s=0.0)
    check_agreement(IsolatedHosts(options), state, wanted, lambda *case: rules.isolated_hosts(*case, options))


@given(
    fleets_with_aggregates(),
    st.lists(st.tuples(st.sampled_from(["host-1", "host-2"]), st.sampled_from(["node-1", "node-2"]))),
)
def test_retry(state, tried):
    check_agreement(Retry(NoOptions()), state, spec(retry=RetryState(hosts=tuple(tried))), rules.retry)


@given(fleets_with_aggregates(), st.sets(st.sampled_from("abc")))
def test_metrics(state, names):
    rule = Metrics(MetricsOptions(weight_setting=tuple(f"{name}=1" for name in names)))
    check_agreement(rule, state, spec(), lambda *case: rules.reported_metrics(*case, names))


TAGS = {
    "physical_network": st.sampled_from(["red", "blue"]),
    "remote_managed": st.sampled_from(["true", "false"]),
    "live_migratable": st.sampled_from(["true", "false"]),
}
KINDS = {
    "product_id": st.sampled_from(["a", "b", "A"]),
    "dev_type": st.sampled_from(["type-PCI", "type-VF", "type-PF", "vdpa"]),
}
devices_of_hosts = st.lists(
    st.builds(
        PciPool,
        vendor_id=st.just("8086"),
        count=st.integers(0, 3),
        **KINDS,
        tags=st.fixed_dictionaries({}, optional=TAGS),
    ),
    max_size=4,
)
wanted_devices = st.builds(
    PciRequest,
    count=st.integers(1, 3),
    alternatives=st.lists(st.fixed_dictionaries({}, optional=KINDS | TAGS), min_size=1, max_size=2).map(tuple),
    source=st.sampled_from(["flavor", "flavor", "port"]),
    request_id=st.sampled_from(["r", "s"]),
)


@given(st.lists(devices_of_hosts, min_size=1, max_size=5), st.lists(wanted_devices, max_size=3), st.data())
def test_pci_passthrough(pools_of_hosts, requests, data):
    provided = [
        tuple(
            msgspec.structs.replace(pool, rp_uuids=data.draw(st.sampled_from([(), (str(at),)])))
            for at, pool in enumerate(pools)
        )
        for pools in pools_of_hosts
    ]
    state = fleet(*[HostFacts(pci_pools=pools) for pools in provided])
    wanted = Spec(spec().request, now_s=0.0, pci_requests=tuple(requests))
    rule = PciPassthrough(NoOptions())
    check_agreement(rule, state, wanted, lambda *case: rules.pci_passthrough(*case, {}))
    suffixes = sorted({f"{each.request_id}-{at}" for each in requests for at in range(each.count)})
    mappings = {suffix: (data.draw(st.sampled_from("0123")),) for suffix in suffixes}
    for row in range(len(provided)):
        accepted = rule.accepts(host_view(state), wanted, at=row, mappings=mappings)
        assert accepted is rules.pci_passthrough(state, row, wanted, mappings)
