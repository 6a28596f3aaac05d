"""The filters that read the metadata of aggregates."""

import pytest

from roost.errors import BadSettings
from roost.model.host import HostFacts
from roost.model.settings.roost_settings import Settings
from roost.scheduler.filters.aggregate_image_properties_isolation import (
    AggregateImagePropertiesIsolation,
    AggregateImagePropertiesIsolationOptions,
)
from roost.scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecs
from roost.scheduler.filters.aggregate_io_ops import AggregateIoOps
from roost.scheduler.filters.aggregate_multi_tenancy_isolation import AggregateMultiTenancyIsolation
from roost.scheduler.filters.aggregate_num_instances import AggregateNumInstances
from roost.scheduler.filters.aggregate_type_affinity import AggregateTypeAffinity
from roost.scheduler.filters.availability_zone import AvailabilityZone, AvailabilityZoneOptions
from roost.scheduler.filters.io_ops import IoOps
from roost.scheduler.filters.num_instances import NumInstances
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.rule_support.limits import InstancesOptions, IoOpsOptions
from roost.settings import read_settings
from tests.support.fleets.fleets import fleet, host_view, hosts, spec


def verdicts_of(rule, request, *aggregates, hosts=4):
    """Return the verdicts of a filter; aggregates are pairs of metadata and host rows."""
    if not rule.concerns(request):
        return [True] * hosts
    return rule.keep(host_view(fleet(*[HostFacts()] * hosts, aggregates=aggregates)), request).tolist()


@pytest.mark.shows("S019")
@pytest.mark.parametrize(
    ("zone", "verdicts"),
    [
        ("east", [True, True, False, False]),
        ("west", [False, True, False, False]),
        ("nova", [False, False, True, True]),
        ("west, nova", [False, True, True, True]),
        ("south", [False, False, False, False]),
        (None, [True, True, True, True]),
        ("", [True, True, True, True]),
    ],
)
def test_host_is_in_the_zones_of_its_aggregates_or_the_default_zone(zone, verdicts):
    rule = AvailabilityZone(AvailabilityZoneOptions())
    zones = ({"availability_zone": "east"}, [0, 1]), ({"availability_zone": "west"}, [1]), ({"ssd": "yes"}, [2])
    assert verdicts_of(rule, spec(availability_zone=zone), *zones) == verdicts


def test_default_zone_comes_from_the_settings():
    assert AvailabilityZoneOptions().default_availability_zone == Settings().default.default_availability_zone
    rule = AvailabilityZone(AvailabilityZoneOptions(default_availability_zone="home"))
    assert verdicts_of(rule, spec(availability_zone="home")) == [True] * 4
    assert rule.reason(spec(availability_zone="home, east")) == "are not in availability zone home or east"


@pytest.mark.shows("S040")
@pytest.mark.parametrize(
    ("project", "verdicts"),
    [("red", [True, False, True, True]), ("blue", [True, True, False, True]), ("", [False, False, False, True])],
)
def test_all_tenant_id_keys_of_an_aggregate_count(project, verdicts):
    rule = AggregateMultiTenancyIsolation(NoOptions())
    aggregates = (
        ({"filter_tenant_id": "red, green"}, [0]),
        ({"filter_tenant_id_2": "blue"}, [0, 1]),
        ({"filter_tenant_id3": "red", "other": "blue"}, [2]),
        ({"other": "red"}, [3]),
    )
    assert verdicts_of(rule, spec(project_id=project), *aggregates) == verdicts


@pytest.mark.shows("S021")
@pytest.mark.parametrize(
    ("extra_specs", "verdicts"),
    [
        ({"ssd": "true"}, [True, True, False, False]),
        ({"aggregate_instance_extra_specs:ssd": "true"}, [True, True, False, False]),
        ({"ssd": "<or> true <or> false"}, [True, True, True, False]),
        ({"speed": ">= 10"}, [False, True, False, False]),
        ({"ssd": "true", "speed": "5"}, [True, False, False, False]),
        ({"capabilities:ssd": "true", "hw:cpu_policy": "dedicated"}, [True, True, True, True]),
        ({"nobody": "has"}, [False, False, False, False]),
        ({}, [True, True, True, True]),
    ],
)
def test_each_extra_spec_must_match_a_value_of_the_aggregates(extra_specs, verdicts):
    rule = AggregateInstanceExtraSpecs(NoOptions())
    aggregates = (
        ({"ssd": "true", "speed": "5"}, [0]),
        ({"ssd": "false, true", "speed": "12"}, [1]),
        ({"ssd": "false"}, [2]),
    )
    assert verdicts_of(rule, spec(extra_specs), *aggregates) == verdicts


def test_numeric_extra_spec_ignores_text_values():
    rule = AggregateInstanceExtraSpecs(NoOptions())
    assert verdicts_of(
        rule, spec({"speed": ">= 5"}), ({"speed": "fast, 7"}, [0]), ({"speed": "fast"}, [1]), hosts=2
    ) == [
        True,
        False,
    ]


@pytest.mark.shows("S041")
@pytest.mark.parametrize(
    ("image", "verdicts"),
    [
        ({"os_distro": "fedora"}, [True, False, True, True]),
        ({"os_distro": "windows"}, [False, True, True, True]),
        ({"hw_machine_type": "q35"}, [True, True, False, True]),
        ({"architecture": "x86_64", "other": "x"}, [True, True, True, True]),
        ({"os_distro": ""}, [True, True, True, True]),
        ({}, [True, True, True, True]),
        (None, [True, True, True, True]),
    ],
)
def test_image_property_must_match_the_aggregate_metadata(image, verdicts):
    rule = AggregateImagePropertiesIsolation(AggregateImagePropertiesIsolationOptions())
    aggregates = (
        ({"os_distro": "fedora, debian"}, [0]),
        ({"os_distro": "windows"}, [1]),
        ({"hw_machine_type": "pc"}, [2]),
    )
    assert verdicts_of(rule, spec(image=image), *aggregates) == verdicts


def test_keys_outside_the_image_property_namespace_are_ignored():
    options = AggregateImagePropertiesIsolationOptions(
        aggregate_image_properties_isolation_namespace="os", aggregate_image_properties_isolation_separator="_"
    )
    aggregates = ({"hw_machine_type": "pc"}, [0]), ({"os_distro": "fedora"}, [1])
    request = spec(image={"os_distro": "debian", "hw_machine_type": "q35"})
    assert verdicts_of(AggregateImagePropertiesIsolation(options), request, *aggregates, hosts=2) == [True, False]


@pytest.mark.shows("S037")
def test_aggregates_of_a_host_must_list_the_flavor_name():
    rule = AggregateTypeAffinity(NoOptions())
    aggregates = ({"instance_type": "large, small"}, [0, 1]), ({"instance_type": "large"}, [2]), ({"x": "y"}, [3])
    assert verdicts_of(rule, spec(), *aggregates) == [True, True, False, True]


@pytest.mark.shows("S008", "S029", "S031")
@pytest.mark.parametrize(
    ("rule", "column"),
    [
        (AggregateNumInstances(InstancesOptions(max_instances_per_host=3)), "num_instances"),
        (AggregateIoOps(IoOpsOptions(max_io_ops_per_host=3)), "num_io_ops"),
    ],
)
def test_lowest_aggregate_limit_applies_or_else_the_default(rule, column):
    key = f"max_{column.removeprefix('num_')}_per_host"
    state = fleet(
        *[HostFacts()] * 5,
        aggregates=[
            ({key: "5"}, [0, 1, 2]),
            ({key: "2"}, [0, 2]),
            ({key: " 1 "}, [2]),
            ({key: "many"}, [3]),
            ({key: "9"}, [3]),
        ],
    )
    for count in range(6):
        state.hosts.columns[column].data[:5] = count
        limits = [2, 5, 1, 3, 3]
        assert rule.keep(host_view(state), spec()).tolist() == [count < limit for limit in limits]
    assert rule.warnings(host_view(state), spec()) == [
        f"aggregate metadata {key}='many' of aggregate-4 is not a valid number; the default holds for its hosts"
    ]
    assert rule.keep(host_view(state, [1]), spec()).tolist() == [False]


def test_room_is_the_limit_minus_the_instances():
    rule = NumInstances(InstancesOptions(max_instances_per_host=3))
    state = fleet(*[HostFacts()] * 5)
    state.hosts.columns["num_instances"].data[:5] = range(5)
    assert rule.room(host_view(state), spec()).tolist() == [3, 2, 1, 0, 0]
    assert rule.reason(spec()) == "have 3 instances or more"


@pytest.mark.shows("S028", "S086")
def test_default_instance_limit_is_50():
    view = hosts(num_instances=[0, 49, 50])
    assert NumInstances(InstancesOptions()).keep(view, spec()).tolist() == [True, True, False]
    settings = read_settings("[filter_scheduler]\nmax_instances_per_host = 2").tables["filter_scheduler"]
    rule = NumInstances(InstancesOptions(max_instances_per_host=settings["max_instances_per_host"]))
    assert rule.keep(hosts(num_instances=[1, 2]), spec()).tolist() == [True, False]
    with pytest.raises(BadSettings, match="max_instances_per_host"):
        read_settings("[filter_scheduler]\nmax_instances_per_host = 0")


@pytest.mark.shows("S030", "S087")
def test_default_io_ops_limit_is_8():
    view = hosts(num_io_ops=[0, 7, 8])
    assert IoOps(IoOpsOptions()).keep(view, spec()).tolist() == [True, True, False]
    settings = read_settings("[filter_scheduler]\nmax_io_ops_per_host = 0").tables["filter_scheduler"]
    rule = IoOps(IoOpsOptions(max_io_ops_per_host=settings["max_io_ops_per_host"]))
    assert rule.keep(view, spec()).tolist() == [False, False, False]
    with pytest.raises(BadSettings, match="max_io_ops_per_host"):
        read_settings("[filter_scheduler]\nmax_io_ops_per_host = -1")
