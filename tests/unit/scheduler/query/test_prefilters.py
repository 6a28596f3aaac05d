"""The cases of each pre-filter, then the effect of pre-filters on a decision."""

import pytest

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Network, Request
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext
from roost.scheduler.query.prefilters import PREFILTERS
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import aggregate, chosen_hosts, host, roost_with, settings_of, small_request

QCOW2 = "COMPUTE_IMAGE_TYPE_QCOW2"


def effect(
    name, extra_specs=None, *, image=None, aggregates=None, required=(), are_hosts_owned=False, options=None, **fields
):
    """Return the effect of a pre-filter; ``options`` are settings of [scheduler]."""
    request = Request(flavor=Flavor(name="f", vcpus=1, extra_specs=extra_specs or {}), image=image, **fields)
    return PREFILTERS[name](
        PrefilterContext(
            request=request,
            required=frozenset(required),
            aggregates=aggregates or {},
            are_hosts_owned=are_hosts_owned,
            default_zone="nova",
            settings=SchedulerSettings(**(options or {})),
        )
    )


def image_of(disk_format=None, **properties):
    return Image(id="i", disk_format=disk_format, properties=properties)


def root_traits(*traits):
    return Effect(root_required=frozenset(traits))


def test_prefilters_run_in_nova_order():
    assert list(PREFILTERS) == [
        "require_tenant_aggregate",
        "map_az_to_placement_aggregate",
        "require_image_type_support",
        "compute_status_filter",
        "isolate_aggregates",
        "transform_image_metadata",
        "accelerators_filter",
        "packed_virtqueue_filter",
        "routed_networks_filter",
        "remote_managed_ports_filter",
        "ephemeral_encryption_filter",
        "virtio_sound_filter",
        "tpm_secret_security_filter",
        "owner_nova_filter",
    ]


TENANTS = {"a": {"filter_tenant_id": "p"}, "b": {"filter_tenant_id_2": "p"}, "c": {"filter_tenant_id": "q,p"}}
TENANT_LIMIT = {"limit_tenants_to_placement_aggregate": True}
TENANT_REQUIREMENT = TENANT_LIMIT | {"placement_aggregate_required_for_tenants": True}


@pytest.mark.parametrize(
    ("project_id", "options", "expected"),
    [
        ("p", {}, NOTHING),
        ("p", TENANT_LIMIT, Effect(member_of=(frozenset({"a", "b"}),))),
        ("r", TENANT_LIMIT, NOTHING),
        ("r", TENANT_REQUIREMENT, Effect(refusal="No hosts available for tenant")),
        ("p", TENANT_REQUIREMENT, Effect(member_of=(frozenset({"a", "b"}),))),
    ],
)
def test_require_tenant_aggregate(project_id, options, expected):
    assert effect("require_tenant_aggregate", aggregates=TENANTS, project_id=project_id, options=options) == expected


ZONES = {"a": {"availability_zone": "east"}, "b": {"availability_zone": "west, far"}, "c": {"ssd": "yes"}}


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        (None, NOTHING),
        ("east", Effect(member_of=(frozenset({"a"}),))),
        ("far", Effect(member_of=(frozenset({"b"}),))),
        ("east, far", Effect(member_of=(frozenset({"a", "b"}),))),
        ("nova", Effect(forbidden_aggregates=frozenset({"a", "b"}))),
    ],
)
def test_map_az_to_placement_aggregate(zone, expected):
    assert effect("map_az_to_placement_aggregate", aggregates=ZONES, availability_zone=zone) == expected


def test_unknown_zone_is_an_error_or_a_warning():
    with pytest.raises(BadRequest, match="no availability zone north"):
        effect("map_az_to_placement_aggregate", aggregates=ZONES, availability_zone="north")
    result = effect("map_az_to_placement_aggregate", aggregates=ZONES, availability_zone="north,east")
    assert (result.member_of, len(result.warnings)) == ((frozenset({"a"}),), 1)


TYPE_SUPPORT = {"query_placement_for_image_type_support": True}


@pytest.mark.parametrize(
    ("image", "is_bfv", "options", "expected"),
    [
        (image_of("qcow2"), False, {}, NOTHING),
        (image_of("qcow2"), False, TYPE_SUPPORT, root_traits(QCOW2)),
        (image_of("qcow2"), True, TYPE_SUPPORT, NOTHING),
        (image_of(), False, TYPE_SUPPORT, NOTHING),
        (None, False, TYPE_SUPPORT, NOTHING),
    ],
)
def test_require_image_type_support(image, is_bfv, options, expected):
    assert effect("require_image_type_support", image=image, is_bfv=is_bfv, options=options) == expected


def test_unknown_disk_format_is_a_warning_and_not_required():
    result = effect("require_image_type_support", image=image_of("bogus"), options=TYPE_SUPPORT)
    assert result == Effect(warnings=("COMPUTE_IMAGE_TYPE_BOGUS is not a standard trait, so it is not required",))


def test_compute_status_filter():
    assert effect("compute_status_filter") == Effect(root_forbidden=frozenset({"COMPUTE_STATUS_DISABLED"}))


ISOLATION_AGGREGATES = {
    "a": {"trait:CUSTOM_GOLD": "required"},
    "b": {"trait:CUSTOM_GOLD": "required", "trait:HW_CPU_X86_VMX": "required"},
    "c": {"trait:CUSTOM_GOLD": "wanted", "ssd": "required"},
}


@pytest.mark.parametrize(
    ("required", "expected"),
    [((), {"a", "b"}), (("CUSTOM_GOLD",), {"b"}), (("CUSTOM_GOLD", "HW_CPU_X86_VMX"), set())],
)
def test_isolate_aggregates(required, expected):
    options = {"enable_isolated_aggregate_filtering": True}
    assert effect("isolate_aggregates", aggregates=ISOLATION_AGGREGATES, required=required) == NOTHING
    result = effect("isolate_aggregates", aggregates=ISOLATION_AGGREGATES, required=required, options=options)
    assert result == Effect(forbidden_aggregates=frozenset(expected))


@pytest.mark.parametrize(
    ("properties", "traits"),
    [
        ({"hw_disk_bus": "virtio"}, {"COMPUTE_STORAGE_BUS_VIRTIO"}),
        (
            {"hw_cdrom_bus": "sata", "hw_disk_bus": "scsi", "hw_video_model": "qxl", "hw_architecture": "x86_64"},
            {"COMPUTE_STORAGE_BUS_SATA", "COMPUTE_STORAGE_BUS_SCSI", "COMPUTE_GRAPHICS_MODEL_QXL", "HW_ARCH_X86_64"},
        ),
        ({"hw_vif_model": "spapr-vlan"}, {"COMPUTE_NET_VIF_MODEL_SPAPR_VLAN"}),
        ({"hw_vif_model": "VirtualE1000e"}, {"COMPUTE_NET_VIF_MODEL_E1000E"}),
        ({"hw_emulation_architecture": "aarch64"}, {"COMPUTE_ARCH_AARCH64"}),
    ],
)
def test_transform_image_metadata(properties, traits):
    image = image_of(**properties)
    assert effect("transform_image_metadata", image=image) == NOTHING
    assert effect("transform_image_metadata", image=image, options={"image_metadata_prefilter": True}) == root_traits(
        *traits
    )


@pytest.mark.parametrize("unknown", [{"hw_architecture": "armv7l"}, {"hw_viommu_model": "intel"}])
def test_one_unknown_image_trait_drops_all_image_traits(unknown):
    image = image_of(hw_disk_bus="virtio", **unknown)
    result = effect("transform_image_metadata", image=image, options={"image_metadata_prefilter": True})
    assert (result.root_required, len(result.warnings)) == (frozenset(), 1)


ENCRYPTION, SECRET = "COMPUTE_EPHEMERAL_ENCRYPTION", "COMPUTE_SECURITY_TPM_SECRET_SECURITY_"


@pytest.mark.parametrize(
    ("name", "extra_specs", "properties", "traits"),
    [
        ("accelerators_filter", {"accel:device_profile": "x"}, {}, {"COMPUTE_ACCELERATORS"}),
        ("accelerators_filter", {"accel:device_profile": ""}, {}, ()),
        ("packed_virtqueue_filter", {"hw:virtio_packed_ring": "yes"}, {}, {"COMPUTE_NET_VIRTIO_PACKED"}),
        ("packed_virtqueue_filter", {}, {"hw_virtio_packed_ring": "true"}, {"COMPUTE_NET_VIRTIO_PACKED"}),
        ("packed_virtqueue_filter", {"hw:virtio_packed_ring": "bogus"}, {}, ()),
        ("ephemeral_encryption_filter", {"hw:ephemeral_encryption": "true"}, {}, {ENCRYPTION}),
        ("ephemeral_encryption_filter", {"hw:ephemeral_encryption_format": "luks"}, {}, ()),
        (
            "ephemeral_encryption_filter",
            {},
            {"hw_ephemeral_encryption": "1", "hw_ephemeral_encryption_format": "luks"},
            {ENCRYPTION, f"{ENCRYPTION}_LUKS"},
        ),
        ("virtio_sound_filter", {"hw:sound_model": "virtio"}, {}, {"COMPUTE_SOUND_MODEL_VIRTIO"}),
        ("virtio_sound_filter", {}, {"hw_sound_model": "virtio"}, {"COMPUTE_SOUND_MODEL_VIRTIO"}),
        ("virtio_sound_filter", {"hw:sound_model": "usb"}, {}, ()),
        ("tpm_secret_security_filter", {"hw:tpm_version": "2.0"}, {}, {f"{SECRET}USER"}),
        ("tpm_secret_security_filter", {"hw:tpm_secret_security": "host"}, {}, ()),
        (
            "tpm_secret_security_filter",
            {"hw:tpm_secret_security": "host"},
            {"hw_tpm_version": "2.0"},
            {f"{SECRET}HOST"},
        ),
    ],
)
def test_device_prefilters_require_traits_of_the_root(name, extra_specs, properties, traits):
    assert effect(name, extra_specs, image=image_of(**properties)) == root_traits(*traits)


@pytest.mark.parametrize(
    ("name", "extra_specs", "properties"),
    [
        ("packed_virtqueue_filter", {"hw:virtio_packed_ring": "false"}, {"hw_virtio_packed_ring": "true"}),
        ("ephemeral_encryption_filter", {"hw:ephemeral_encryption": "true"}, {"hw_ephemeral_encryption": "false"}),
        ("virtio_sound_filter", {"hw:sound_model": "virtio"}, {"hw_sound_model": "usb"}),
    ],
)
def test_flavor_and_image_may_not_contradict_each_other(name, extra_specs, properties):
    with pytest.raises(BadRequest, match="contradicts"):
        effect(name, extra_specs, image=image_of(**properties))


def test_unknown_tpm_secret_security_is_refused():
    result = effect("tpm_secret_security_filter", {"hw:tpm_version": "2.0", "hw:tpm_secret_security": "bogus"})
    assert result == Effect(refusal="TPM secret security 'bogus' is not supported.")


def test_routed_networks_filter():
    options = {"query_placement_for_routed_network_aggregates": True}
    networks = (Network(name="n", segments={"s1": "a", "s2": "b"}), Network(name="flat"))
    assert effect("routed_networks_filter", networks=networks) == NOTHING
    result = effect("routed_networks_filter", networks=networks, options=options)
    assert result == Effect(member_of=(frozenset({"a", "b"}),))
    segment_without_aggregate = (Network(name="n", segments={"s1": "a", "s2": ""}),)
    assert (
        "Segment s2 of network n"
        in effect("routed_networks_filter", networks=segment_without_aggregate, options=options).refusal
    )


def test_remote_managed_ports_filter():
    assert effect("remote_managed_ports_filter", networks=(Network(),)) == NOTHING
    result = effect("remote_managed_ports_filter", networks=(Network(), Network(is_remote_managed=True)))
    assert result == root_traits("COMPUTE_REMOTE_MANAGED_PORTS")


def test_owner_nova_filter():
    assert effect("owner_nova_filter") == NOTHING
    owner = frozenset({"OWNER_NOVA"})
    assert effect("owner_nova_filter", are_hosts_owned=True) == Effect(root_required=owner, device_required=owner)


def roost_with_prefilters(*fleets, **options):
    settings = settings_of()
    scheduler = SchedulerSettings(**options)
    return roost_with(*fleets, settings=type(settings)(scheduler=scheduler, filter_scheduler=settings.filter_scheduler))


def test_stage_has_the_name_of_its_prefilter():
    roost = roost_with_prefilters(
        aggregate("gold", filter_tenant_id="p"), host("a", aggregates=["gold"]), host("b"), **TENANT_LIMIT
    )
    decision = roost.decide(small_request(project_id="p"))
    assert chosen_hosts(decision) == ["a"]
    stage = decision.stages[0]
    assert (stage.rule, stage.before, stage.after) == ("require_tenant_aggregate", 2, 1)


def test_prefilter_refusal_is_the_reason_of_the_decision():
    roost = roost_with_prefilters(host("a"), host("b"), **TENANT_REQUIREMENT)
    decision = roost.decide(small_request(project_id="p"))
    assert (decision.outcome, decision.reason) == ("refused", "Scheduling failed: No hosts available for tenant")
    (stage, *_) = decision.stages
    assert (stage.rule, stage.after) == ("require_tenant_aggregate", 0)
    assert roost.explain(small_request(project_id="p")).reason == decision.reason


def test_forbidden_aggregate_is_attributed_to_its_prefilter():
    roost = roost_with_prefilters(
        aggregate("gold", **{"trait:CUSTOM_GOLD": "required"}),
        host("a", aggregates=["gold"]),
        host("b"),
        enable_isolated_aggregate_filtering=True,
    )
    decision = roost.decide(small_request())
    assert [stage.rule for stage in decision.stages if stage.before > stage.after] == ["isolate_aggregates"]
    assert uuid_named("gold") not in str(decision.picks)


def test_unknown_forced_host_is_a_refusal():
    decision = roost_with_prefilters(host("a")).decide(small_request(force_hosts=("b",)))
    assert (decision.outcome, decision.reason) == ("refused", "No such host - host: b node: None")


DEDICATED_REQUEST = Request(
    flavor=Flavor(name="f", vcpus=2, memory_mb=1, extra_specs={"hw:cpu_policy": "dedicated"}), count=4
)


def test_dedicated_processors_are_used_before_shared_ones():
    roost = roost_with_prefilters(host("a", VCPU=4, PCPU=4, MEMORY_MB=32))
    decision = roost.decide(DEDICATED_REQUEST)
    assert [next(iter(pick.allocations.values())) for pick in decision.picks] == [
        {"PCPU": 2, "MEMORY_MB": 1},
        {"PCPU": 2, "MEMORY_MB": 1},
        {"VCPU": 2, "MEMORY_MB": 1},
        {"VCPU": 2, "MEMORY_MB": 1},
    ]
    refusal = roost.decide(DEDICATED_REQUEST)
    assert refusal.reason.startswith("0 of 1 hosts: 1 lacks 2 PCPU or more, and 2 VCPU or more in its place")


@pytest.mark.parametrize(("totals", "expected"), [({"PCPU": 5, "VCPU": 4}, 4), ({"VCPU": 4}, 2), ({"PCPU": 4}, 2)])
def test_capacity_counts_dedicated_and_shared_processors(totals, expected):
    roost = roost_with_prefilters(host("a", MEMORY_MB=32, **totals), host("b", MEMORY_MB=1))
    assert roost.capacity(DEDICATED_REQUEST).count == expected
