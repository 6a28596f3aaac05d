"""Surveys of the fleet: sums by class and zone."""

import threading
from collections import defaultdict

import pytest

from roost.app.monitoring.samples import survey_fleet
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import Aggregate, HostFacts, HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from roost.model.settings.monitoring_settings import Monitoring
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.worlds import roost_on

DOWN_TIME_S = 60.0
NOW_S = 1000.0


def fleet(facts, *, zones=()):
    """Return hosts with 4 VCPU and 4,096 MiB, the first ones in the given zones, and a shared disk."""
    offers = {"VCPU": Inventory(total=4), "MEMORY_MB": Inventory(total=4096)}
    aggregates = [
        Aggregate(uuid=uuid_of("zone", zone), name=zone, metadata={"availability_zone": zone})
        for zone in dict.fromkeys(zones)
    ]
    providers = [
        ProviderSpec(
            uuid=uuid_of("host", str(number)),
            name=f"h{number}",
            inventories=offers,
            aggregates=frozenset([uuid_of("zone", zones[number])] if number < len(zones) else []),
        )
        for number in range(len(facts))
    ]
    disk = ProviderSpec(uuid=uuid_of("disk"), name="disk", inventories={"DISK_GB": Inventory(total=100)})
    hosts = [
        HostSpec(provider_uuid=provider.uuid, host=provider.name, node=provider.name, facts=each)
        for provider, each in zip(providers, facts, strict=True)
    ]
    return Fleet(providers=[*providers, disk], hosts=hosts, aggregates=aggregates)


def survey(state, **limits):
    """Return the values of a survey: name -> labels -> value."""
    samples = survey_fleet(
        state, limits=Monitoring(**limits), default_zone="nova", now_s=NOW_S, down_time_s=DOWN_TIME_S
    )
    found = defaultdict(dict)
    for each in samples:
        found[each.family][each.labels] = each.value
    return found


@pytest.fixture
def roost():
    with roost_on() as roost:
        yield roost


def test_hosts_are_counted_by_state_and_zone(roost):
    facts = [
        HostFacts(),
        HostFacts(is_disabled=True),
        HostFacts(is_forced_down=True, is_disabled=True),
        HostFacts(reported_at_s=NOW_S - 2 * DOWN_TIME_S),
    ]
    roost.install(fleet(facts, zones=("east", "east", "east")))
    assert survey(roost.state)["roost_hosts"] == {
        ("up", "east"): 1,
        ("disabled", "east"): 1,
        ("down", "east"): 1,
        ("up", "nova"): 0,
        ("disabled", "nova"): 0,
        ("down", "nova"): 1,
    }


def test_amounts_are_summed_by_class_and_zone(roost):
    roost.install(fleet([HostFacts()] * 3, zones=("east", "west")))
    roost.decide(Request(flavor=Flavor(name="f", vcpus=1, memory_mb=512), availability_zone="east"))
    found = survey(roost.state)
    assert found["roost_fleet_capacity"] == {
        ("VCPU", "east"): 4,
        ("VCPU", "west"): 4,
        ("VCPU", "nova"): 4,
        ("MEMORY_MB", "east"): 4096,
        ("MEMORY_MB", "west"): 4096,
        ("MEMORY_MB", "nova"): 4096,
        ("DISK_GB", "none"): 100,
    }
    used = {labels: value for labels, value in found["roost_fleet_used"].items() if value}
    assert used == {("VCPU", "east"): 1, ("MEMORY_MB", "east"): 512}


def test_free_amounts_of_a_host_without_another_class_are_stranded(roost):
    roost.install(fleet([HostFacts()]))
    roost.decide(Request(flavor=Flavor(name="f", vcpus=4, memory_mb=1024)))
    stranded = survey(roost.state)["roost_fleet_stranded"]
    assert stranded["MEMORY_MB", "nova", "other_class"] == 3072
    assert stranded["VCPU", "nova", "other_class"] == 0
    assert stranded["DISK_GB", "none", "other_class"] == stranded["DISK_GB", "none", "host"] == 0


def test_free_amounts_of_an_unusable_host_are_stranded(roost):
    roost.install(fleet([HostFacts(is_disabled=True), HostFacts()]))
    stranded = survey(roost.state)["roost_fleet_stranded"]
    assert stranded["MEMORY_MB", "nova", "host"] == 4096
    assert stranded["MEMORY_MB", "nova", "other_class"] == 0


def test_further_zones_are_counted_together(roost):
    roost.install(fleet([HostFacts()] * 4, zones=("east", "east", "north", "west")))
    found = survey(roost.state, zones_max=2)
    assert {zone for _, zone in found["roost_hosts"]} == {"east", "other"}
    assert found["roost_hosts"]["up", "other"] == 2
    assert found["roost_fleet_capacity"]["VCPU", "other"] == 8


def test_classes_with_the_fewest_providers_are_left_out(roost):
    roost.install(fleet([HostFacts()] * 2))
    assert {name for name, _ in survey(roost.state, classes_max=2)["roost_fleet_used"]} == {"MEMORY_MB", "VCPU"}


def test_survey_leaves_no_trace_in_the_columns(roost):
    """A survey runs beside the deciding thread, so it must not fill a cache of the columns."""
    roost.install(fleet([HostFacts()] * 2, zones=("east",)))
    state = roost.state
    state.forget_derived()
    views = [column._view for column in (state.providers.root, state.hosts.alive)]
    thread = threading.Thread(target=survey, args=(state,))
    thread.start()
    thread.join()
    assert state._host_trees is None
    assert [column._view for column in (state.providers.root, state.hosts.alive)] == views
