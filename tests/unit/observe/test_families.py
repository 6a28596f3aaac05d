import re

import pytest
from prometheus_client import REGISTRY

from roost.observe import exposition, metrics
from roost.observe.families import AREAS, FAMILIES

UNITS = ("_seconds", "_bytes")


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_family_follows_the_conventions_of_prometheus(family):
    assert re.fullmatch(r"roost(_[a-z]+)+", family.name)
    assert family.name.endswith("_total") == (family.kind == "counter")
    assert not family.name.endswith(("_created", "_count", "_sum", "_bucket", "_info")) or family.name.endswith(
        "_build_info"
    )
    assert ("seconds" in family.name or "bytes" in family.name) == family.base_name.endswith(UNITS)
    assert family.text.endswith((".", "versions."))
    assert family.area in AREAS


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_each_label_has_a_documented_bound(family):
    names = [label.name for label in family.labels]
    assert len(names) == len(set(names))
    assert not {"le", "job", "instance"} & set(names)  # Prometheus sets these itself.
    assert all(label.bound for label in family.labels)


def test_every_registered_metric_of_roost_is_declared():
    registered = {metric.name for metric in REGISTRY.collect() if metric.name.startswith("roost")}
    assert registered <= FAMILIES.keys()


def test_exposition_has_no_times_of_creation():
    metrics.count_response("/v1/hosts", "GET", 200, elapsed_s=0.1)
    text = exposition.text().decode()
    assert 'roost_requests_total{method="GET",route="/v1/hosts",status="200"}' in text
    assert "_created" not in text


def test_only_the_selected_areas_are_shown():
    text = exposition.text({"thread"}).decode()
    assert "roost_queue_depth" in text
    assert "roost_requests_total" not in text


def test_routes_of_one_group_share_their_buckets():
    routes = ("/v1/instances", "/v1/instances/{uuid}", "/v1/instances/{uuid}/start")
    assert {metrics.route_group(route) for route in routes} == {"/v1/instances"}
    assert metrics.route_group("none") == "none"
