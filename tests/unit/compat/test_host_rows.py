"""Rows of columns as filters and weighers written for Nova read hosts."""

import datetime as dt

import pytest

from roost.compat.adapter import adapt
from roost.compat.host_rows import rows_of
from roost.compat.scheduler.filters import BaseHostFilter, ComputeFilter
from roost.engine.columns.apply import apply
from roost.model.host import HostFacts, PciPool
from roost.model.settings.roost_settings import FilterScheduler, Settings
from roost.model.writes import Claim, ConsumerRow, InstanceRow
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import boot, fleet, group, hosts_of, spec, uuid_of, uuid_text


def rows(*facts, now_s=0.0, **more):
    return rows_of(hosts_of(fleet(*facts, **more)), spec(now_s=now_s))


def test_an_aggregate_has_the_zone_that_its_metadata_names():
    zoned, plain = rows(
        HostFacts(), HostFacts(), aggregates=[({"availability_zone": "az1"}, [0]), ({"ssd": "yes"}, [1])]
    )
    assert [each.availability_zone for each in zoned.aggregates] == ["az1"]
    assert [each.availability_zone for each in plain.aggregates] == [None]


def test_a_service_says_when_it_was_last_seen_and_one_that_never_reports_is_seen_now():
    seen, silent = rows(
        HostFacts(reported_at_s=100.0, is_disabled=True, disabled_reason="new disk"), HostFacts(), now_s=200.0
    )
    assert seen.service["last_seen_up"] == dt.datetime(1970, 1, 1, 0, 1, 40)  # noqa: DTZ001  # Nova's have no zone.
    assert (seen.service["disabled"], seen.service["disabled_reason"]) == (True, "new disk")
    assert (silent.service["host"], silent.service["last_seen_up"].minute) == ("host-2", 3)


def test_metrics_are_a_list_and_facts_of_the_processor_are_text_and_table():
    (row,) = rows(HostFacts(metrics={"cpu.percent": 0.5}, cpu_info={"arch": "x"}))
    assert [(each.name, each.value) for each in row.metrics] == [("cpu.percent", 0.5)]
    assert (row.cpu_info, row.cpu_info.get("arch")) == ('{"arch": "x"}', "x")


def test_devices_answer_whether_they_serve_requests():
    pool = PciPool(vendor_id="8086", product_id="1520", count=1)
    rich, poor = rows(HostFacts(pci_pools=(pool,)), HostFacts())
    wanted = [
        type(
            "Wanted",
            (),
            {
                "count": count,
                "spec": [{"vendor_id": "8086"}],
                "source": 1,
                "numa_policy": None,
                "request_id": None,
                "alias_name": None,
            },
        )
        for count in (1, 2)
    ]
    assert [rich.pci_stats.support_requests([each], provider_mapping={}) for each in wanted] == [True, False]
    assert rich.pci_stats.pools[0]["count"] == 1
    assert poor.pci_stats is None


def test_an_instance_has_the_properties_of_its_image():
    state = fleet(HostFacts(), HostFacts())
    boot(state, 0, {"os_distro": "debian"})
    (instance,) = rows_of(hosts_of(state), spec())[0].instances.values()
    assert instance.image_meta.properties.to_dict() == {"os_distro": "debian"}
    assert (instance.host, instance.node) == ("host-1", "node-1")


def test_a_host_can_be_held_in_one_way_that_names_no_providers_where_none_were_searched():
    (row,) = rows(HostFacts())
    assert row.allocation_candidates == [{"mappings": {}}]


def test_a_group_is_shown_with_hosts_outside_of_the_view():
    seen = []

    class Nosy(BaseHostFilter):
        def host_passes(self, host_state, spec_obj):
            seen.append(spec_obj.instance_group.hosts)
            return True

    state = fleet(HostFacts(), HostFacts())
    members = group("affinity", {1: 1})
    state.groups[1] = members
    apply(state, Claim([ConsumerRow(1, uuid_of(7), "", "")], [], [InstanceRow(1, 102, 0, group_id=1)]))
    assert adapt(Nosy)(NoOptions()).keep(hosts_of(state, [0]), spec(group=members)).all()
    assert seen == [["host-2"]]


class Quiet(ComputeFilter):
    """A plug-in that inherits from a filter which looks at facts."""


@pytest.mark.shows("S044")
def test_a_plug_in_may_inherit_from_a_filter_over_facts():
    rule = adapt(Quiet)(NoOptions())
    state = fleet(HostFacts(is_disabled=True), HostFacts())
    assert rule.keep(hosts_of(state), spec()).tolist() == [False, True]


def test_a_moved_instance_is_among_those_of_its_host():
    state = fleet(HostFacts())
    apply(state, Claim([ConsumerRow(1, uuid_of(7), "p", "u")], [], [InstanceRow(1, 101, 0)]))
    (row,) = rows_of(hosts_of(state), spec())
    assert (list(row.instances), row.instances[uuid_text(7)].project_id) == ([uuid_text(7)], "p")


def test_a_plug_in_in_a_host_manager_sees_the_host_states_themselves():
    from roost.compat.scheduler.host_manager import HostManager, HostState

    settings = Settings(
        filter_scheduler=FilterScheduler(available_filters=(f"{__name__}.Marking",), enabled_filters=("Marking",))
    )
    hosts = [HostState("a", "a")]
    manager = HostManager(lambda: hosts, settings=settings, adapt=adapt)
    assert manager.get_filtered_hosts(hosts, {"instance_type": {"name": "f"}}) == hosts
    assert hosts[0].limits == {"seen": True}


class Marking(BaseHostFilter):
    """Leaves a mark on each host state."""

    def host_passes(self, host_state, spec_obj):
        """Set a limit that is no number."""
        host_state.limits["seen"] = True
        return True
