"""Metrics of a running cluster."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from roost.observe.exposition import SERVER_AREAS
from roost.observe.families import FAMILIES
from tests.support.servers.monitored_cluster import monitored_cluster

# Families without a series here: no webhook, and no operation or migration in progress.
ABSENT = {
    "roost_webhook_events",
    "roost_operations_open",
    "roost_operations_oldest_age_seconds",
    "roost_migrations_open",
}


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """Return the samples of a cluster with load: name -> labels -> value."""
    with monitored_cluster(tmp_path_factory.mktemp("cluster")) as server:
        status, headers, body = server.ask("GET", "/metrics", headers={})
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return body.decode()


@pytest.fixture(scope="module")
def samples(metrics):
    found = {}
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def value(samples, name, **labels):
    return samples[name][tuple(sorted(labels.items()))]


def test_every_family_of_a_server_has_a_series(samples):
    missing = {name for name, family in FAMILIES.items() if not samples.keys() & set(family.sample_names)}
    others = {name for name, family in FAMILIES.items() if family.area not in SERVER_AREAS}
    assert others <= missing <= ABSENT | others


def test_labels_of_every_series_are_the_declared_ones(samples):
    for family in FAMILIES.values():
        declared = {label.name for label in family.labels}
        for name in family.sample_names:
            for labels in samples.get(name, {}):
                assert {key for key, _ in labels} - {"le"} == declared, name


def test_decisions_are_counted_by_outcome_and_reason(samples):
    assert value(samples, "roost_decisions_total", outcome="granted") == 1
    assert value(samples, "roost_decisions_total", outcome="refused") == 1
    assert value(samples, "roost_decision_refusals_total", rule="search", reason="amount") == 1
    assert value(samples, "roost_decision_seconds_count") == 2


def test_builds_are_counted_with_their_retries(samples):
    assert value(samples, "roost_builds_started_total") == 2
    assert value(samples, "roost_build_retries_total") == 1
    assert value(samples, "roost_builds_ended_total", outcome="failed") == 1
    assert value(samples, "roost_builds_ended_total", outcome="succeeded") == 1
    assert value(samples, "roost_operations_ended_total", kind="spawn", outcome="done") == 1
    assert value(samples, "roost_operations_ended_total", kind="build", outcome="failed") == 1
    assert value(samples, "roost_order_answers_total", action="spawn", outcome="failed") == 1


def test_hosts_instances_and_agents_are_counted_by_state(samples):
    assert value(samples, "roost_hosts", state="up", zone="nova") == 4
    assert value(samples, "roost_hosts", state="down", zone="nova") == 1
    assert value(samples, "roost_instances", status="SHUTOFF") == 1
    assert value(samples, "roost_instances", status="ERROR") == 1
    assert value(samples, "roost_agents", state="ready") == 4
    assert value(samples, "roost_agents", state="gone") == 1
    assert value(samples, "roost_agents_lost_total") == 1
    assert value(samples, "roost_agents_reporting") == 4


def test_capacity_and_use_have_a_zone(samples):
    zones = {"zone": "nova"}
    assert value(samples, "roost_fleet_used", resource_class="VCPU", **zones) == 2
    assert value(samples, "roost_fleet_stranded", resource_class="VCPU", reason="host", **zones) > 0


def test_audit_and_backup_have_a_time(samples):
    assert value(samples, "roost_audit_findings") == 0
    assert value(samples, "roost_audit_timestamp_seconds") > 1e9
    assert value(samples, "roost_backup_size_bytes") > 100


def test_exposition_is_small_and_routes_have_the_prefix_of_their_api(metrics):
    lines = [line for line in metrics.splitlines() if not line.startswith("#")]
    assert len(lines) < 500
    assert "_created" not in metrics
    routes = set(re.findall(r'route="([^"]*)"', metrics))
    assert {route.split("/")[1] for route in routes - {"none"}} == {"v1", "placement"}
