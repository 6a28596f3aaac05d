"""Rows of columns as the host states that filters and weighers for Nova read."""

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
from tests.support.fleets.fleets import add_instance, fleet, group, host_view, spec, uuid_of, uuid_text


def rows(*facts, now_s=0.0, **more):
    return rows_of(host_view(fleet(*facts, **more)), spec(now_s=now_s))


def test_aggregate_has_the_zone_of_its_metadata():
    zoned, plain = rows(
        HostFacts(), HostFacts(), aggregates=[({"availability_zone": "az1"}, [0]), ({"ssd": "yes"}, [1])]
    )
    assert [each.availability_zone for each in zoned.aggregates] == ["az1"]
    assert [each.availability_zone for each in plain.aggregates] == [None]


def test_service_was_last_seen_at_its_report_or_now_without_one():
    seen, silent = rows(
        HostFacts(reported_at_s=100.0, is_disabled=True, disabled_reason="new disk"), HostFacts(), now_s=200.0
    )
    assert seen.service["last_seen_up"] == dt.datetime(1970, 1, 1, 0, 1, 40)  # noqa: DTZ001  # Nova's times have no zone.
    assert (seen.service["disabled"], seen.service["disabled_reason"]) == (True, "new disk")
    assert (silent.service["host"], silent.service["last_seen_up"].minute) == ("host-2", 3)


def test_metrics_are_a_list_and_cpu_info_is_text_and_mapping():
    (row,) = rows(HostFacts(metrics={"cpu.percent": 0.5}, cpu_info={"arch": "x"}))
    assert [(each.name, each.value) for each in row.metrics] == [("cpu.percent", 0.5)]
    assert (row.cpu_info, row.cpu_info.get("arch")) == ('{"arch": "x"}', "x")


def test_pci_stats_answer_whether_they_support_requests():
    pool = PciPool(vendor_id="8086", product_id="1520", count=1)
    rich, poor = rows(HostFacts(pci_pools=(pool,)), HostFacts())
    requests = [
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
    assert [rich.pci_stats.support_requests([each], provider_mapping={}) for each in requests] == [True, False]
    assert rich.pci_stats.pools[0]["count"] == 1
    assert poor.pci_stats is None


def test_an_instance_has_the_properties_of_its_image():
    state = fleet(HostFacts(), HostFacts())
    add_instance(state, 0, {"os_distro": "debian"})
    (instance,) = rows_of(host_view(state), spec())[0].instances.values()
    assert instance.image_meta.properties.to_dict() == {"os_distro": "debian"}
    assert (instance.host, instance.node) == ("host-1", "node-1")


def test_host_without_a_search_has_one_candidate_without_providers():
    (row,) = rows(HostFacts())
    assert row.allocation_candidates == [{"mappings": {}}]


def test_group_includes_hosts_outside_the_view():
    seen = []

    class Nosy(BaseHostFilter):
        def host_passes(self, host_state, spec_obj):
            seen.append(spec_obj.instance_group.hosts)
            return True

    state = fleet(HostFacts(), HostFacts())
    members = group("affinity", {1: 1})
    state.groups[1] = members
    apply(state, Claim([ConsumerRow(1, uuid_of(7), "", "")], [], [InstanceRow(1, 102, 0, group_id=1)]))
    assert adapt(Nosy)(NoOptions()).keep(host_view(state, [0]), spec(group=members)).all()
    assert seen == [["host-2"]]


class Quiet(ComputeFilter):
    """A plug-in that inherits from a filter over facts."""


@pytest.mark.shows("S044")
def test_plugin_may_inherit_from_a_filter_over_facts():
    rule = adapt(Quiet)(NoOptions())
    state = fleet(HostFacts(is_disabled=True), HostFacts())
    assert rule.keep(host_view(state), spec()).tolist() == [False, True]


def test_instance_is_listed_on_its_host():
    state = fleet(HostFacts())
    apply(state, Claim([ConsumerRow(1, uuid_of(7), "p", "u")], [], [InstanceRow(1, 101, 0)]))
    (row,) = rows_of(host_view(state), spec())
    assert (list(row.instances), row.instances[uuid_text(7)].project_id) == ([uuid_text(7)], "p")


def test_plugin_in_a_host_manager_sees_the_original_host_states():
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
        """Set a limit that is not a number."""
        host_state.limits["seen"] = True
        return True
