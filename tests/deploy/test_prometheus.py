"""A real Prometheus evaluates every expression of the board and the alerts on a cluster with load."""

import pytest

from tests.deploy.expressions import RULES, alerts, panels
from tests.support.debian_packages import find_program
from tests.support.missing_programs import skip_test
from tests.support.servers.monitored_cluster import monitored_cluster
from tests.support.servers.prometheus import HOW_TO_INSTALL, prometheus_on
from tests.support.wait import wait_until

pytestmark = pytest.mark.long
# Metrics without a series in this cluster: nothing is in progress when it is scraped.
ABSENT = {"roost_operations_open", "roost_operations_oldest_age_seconds", "roost_migrations_open"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if find_program("prometheus") is None:
        skip_test(HOW_TO_INSTALL)
    folder = tmp_path_factory.mktemp("prometheus")
    with (
        monitored_cluster(folder) as cluster,
        prometheus_on(cluster.port, rules=RULES, folder=folder / "prometheus") as prometheus,
    ):
        for _ in range(3):
            assert cluster.ask("GET", "/placement/resource_providers")[0] == 200
        yield prometheus


@pytest.mark.parametrize("expression", panels(), ids=lambda expression: expression.place)
def test_panel_of_the_board_has_data(server, expression):
    metrics = {metric for metric, _ in expression.selectors}
    if 'status=~"5.."' in expression.text or metrics <= ABSENT:
        server.query(expression.text)  # Nothing has failed, and nothing is in progress: no series is right.
    else:
        assert wait_until(lambda: server.query(expression.text))


@pytest.mark.parametrize("expression", alerts(), ids=lambda expression: expression.place)
def test_alert_is_evaluated_on_metrics_with_data(server, expression):
    server.query(expression.text)
    for metric, matchers in expression.selectors:
        if metric not in ABSENT and 'status=~"5.."' not in matchers:
            assert server.query(f"{metric}{matchers}"), metric


def test_all_rules_are_evaluated_without_an_error(server):
    def rules():
        return [rule for group in server.get("rules")["groups"] for rule in group["rules"]]

    wait_until(lambda: all(rule["health"] != "unknown" for rule in rules()))
    assert [rule["lastError"] for rule in rules() if rule["health"] != "ok"] == []
    assert len(rules()) == len(alerts())


def test_lost_host_raises_its_alert_and_a_sound_server_none(server):
    def states():
        return {rule["name"]: rule["state"] for group in server.get("rules")["groups"] for rule in group["rules"]}

    wait_until(lambda: states()["RoostHostsDown"] == "pending")  # It fires after five minutes.
    for name in ("RoostDown", "RoostNotReady", "RoostQueueFull", "RoostConductorStopped", "RoostBackupOld"):
        assert states()[name] == "inactive"
