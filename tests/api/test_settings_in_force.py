"""Settings in force: values, sources, rules, and no secrets."""

import signal

import pytest

from roost.app import open_roost
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

ADMIN = {"x-auth-token": "admin"}
SETTINGS = """\
[filter_scheduler]
cpu_weight_multiplier = 2.5
[notifications]
webhook = "http://127.0.0.1:9/services/T0/secret"
"""


@pytest.fixture
def folder(tmp_path):
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(2, vcpus=8))
    return tmp_path


def rows_of(answer):
    return {f"{row['section']}.{row['key']}": row for row in answer["settings"]}


def test_rules_are_in_order_and_name_their_settings():
    with roost_api(fleet(1, vcpus=4)) as own:
        shown = own.get("/settings").json
        rules = own.product.rules
    names = [(rule["kind"], rule["name"]) for rule in shown["rules"]]
    assert names == [("filter", each.name) for each in rules.filters] + [
        ("weigher", each.name) for each in rules.weighers
    ]
    cpu = next(rule for rule in shown["rules"] if (rule["kind"], rule["name"]) == ("weigher", "cpu"))
    assert (cpu["multiplier"], cpu["settings"]) == (1.0, ["filter_scheduler.cpu_weight_multiplier"])
    assert {name for rule in shown["rules"] for name in rule["settings"]} <= set(rows_of(shown))
    row = rows_of(shown)["filter_scheduler.cpu_weight_multiplier"]
    assert row["source"] == "default"
    assert row["description"].startswith("Weight of free virtual CPUs")


def test_each_value_has_its_source_and_secrets_are_masked(folder):
    with serve("--log-level", "debug", "--allow-plain-http", noun="up", folder=folder, settings="") as server:
        shown = server.ask("GET", "/v1/settings", headers=ADMIN)[2]
        rows = rows_of(shown)
        assert (rows["log.level"]["value"], rows["log.level"]["source"]) == ("debug", "command line")
        assert rows["placement.allow_plain_http"]["source"] == "command line"
        assert rows["store.url"]["value"].endswith("roost.db")
        (folder / "roost.toml").write_text(SETTINGS)
        server.process.send_signal(signal.SIGHUP)

        def changed():
            after = server.ask("GET", "/v1/settings", headers=ADMIN)[2]
            return after if after["fingerprint"] != shown["fingerprint"] else None

        after = wait_until(changed)
        row = rows_of(after)["filter_scheduler.cpu_weight_multiplier"]
        assert (row["value"], row["source"], row["default"]) == (2.5, f"{folder}/roost.toml:2", 1.0)
        assert after["needs_restart"] == ["notifications.webhook"]
        assert rows_of(after)["log.level"]["source"] == "command line"
        changes = server.ask("GET", "/v1/changes?kind=settings.reload", headers=ADMIN)[2]["changes"]
        assert [each["details"]["fingerprint"] for each in changes] == [after["fingerprint"]]
    with serve(noun="up", folder=folder, settings=SETTINGS) as server:
        row = rows_of(server.ask("GET", "/v1/settings", headers=ADMIN)[2])["notifications.webhook"]
        assert (row["value"], row["source"]) == ("http://127.0.0.1:9/***", f"{folder}/roost.toml:5")
