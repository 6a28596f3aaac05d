"""``roost status``: the fleet in numbers, on a database and on a server."""

import json
import time

import pytest

from roost.app import open_product, open_roost
from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.store.upkeep.upkeep_rows import record_upkeep
from tests.support.conductors.work_rows import agent, operation, status
from tests.support.fleets.products import fleet, request
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import serve


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a database with three hosts of 8 VCPU, and rows of each kind."""
    now_s = time.time()
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
        roost.decide(request(2))
        for _ in range(2):
            roost.decide(Request(flavor=Flavor(name="large", vcpus=12)))
        roost.decide(Request(flavor=Flavor(name="wide", vcpus=1, memory_mb=2**30)))
    rows = [
        status(1, status="ACTIVE"),
        status(2, status="ACTIVE"),
        status(3, status="ERROR"),
        operation(1, kind="stop", created_at_s=now_s - 120),
        operation(2, kind="build", created_at_s=now_s - 60),
        operation(3, kind="stop", outcome="failed", changed_at_s=now_s - 60),
        operation(4, kind="stop", outcome="failed", changed_at_s=now_s - 7200),
        agent("host-0", heard_at_s=now_s + 3600, state="ready"),
        agent("host-1", heard_at_s=now_s - 3600, state="ready"),
        agent("host-2", heard_at_s=now_s, state="gone"),
    ]
    url = str(tmp_path / "roost.db")
    _, serving = open_product(url, Settings())
    assert serving.run(lambda current: current.commit([Item(writes=(), work=tuple(map(Put, rows)))])) == [None]
    serving.stop()
    record_upkeep(url, "backup", size_bytes=4096)
    return tmp_path


@pytest.fixture(params=["database", "server"])
def command(request, folder, run):
    """Return a function that runs a command on the database or on a server, and returns its output."""

    def command_on(*place):
        def command(*words):
            code, output, error = run(*words, *place)
            assert (code, error) == (0, ""), error
            return output

        return command

    if request.param == "database":
        yield command_on("--data", folder)
    else:
        with serve(noun="up", folder=folder) as server:
            yield command_on("--url", server.address)


def test_status_counts_objects_by_state(command):
    command("host", "set", "host-1", "--disable")
    command("host", "set", "host-2", "--force-down", "--disable")
    shown = json.loads(command("status", "--json"))
    assert shown["hosts"] == {"up": 1, "down": 1, "disabled": 1}
    assert shown["resources"]["VCPU"] == {"used": 2, "capacity": 24, "share": 0.0833}
    assert (shown["consumers"], shown["instances"]) == (1, {"ACTIVE": 2, "ERROR": 1})
    assert shown["agents"] == {"reporting": 1, "silent": 1, "gone": 1}
    assert (shown["operations"]["open"], shown["operations"]["failed"]) == ({"build": 1, "stop": 1}, 1)
    assert shown["now_s"] - shown["operations"]["oldest_at_s"] == pytest.approx(120, abs=60)
    refusals = shown["refusals"]
    assert (refusals["count"], refusals["is_complete"]) == (3, True)
    assert [each["count"] for each in refusals["reasons"]] == [2, 1]
    assert refusals["reasons"][0]["reason"] == "lack 12 VCPU or more"
    assert (shown["audit"], shown["backup"]["size_bytes"]) == (None, 4096)


def test_status_is_one_page_of_text(command):
    lines = command("status").splitlines()
    assert [line.split()[0] for line in lines[:8]] == [
        "hosts",
        "agents",
        "instances",
        "consumers",
        "operations",
        "refusals",
        "backup",
        "audit",
    ]
    assert lines[0].split(maxsplit=1)[1] == "3: 3 up"
    assert lines[2].split(maxsplit=1)[1] == "3: 2 ACTIVE, 1 ERROR"
    assert lines[5].split(maxsplit=1)[1] == "3 in the last hour"
    assert lines[7].split(maxsplit=1)[1] == "never"
    assert ["VCPU", "2", "24", "8.3%"] in [line.split() for line in lines]
    assert lines[-2].split() == ["2", "lack", "12", "VCPU", "or", "more"]


def test_audit_over_the_server_becomes_the_last_one(folder, run):
    with serve(noun="up", folder=folder) as server:
        run("audit", "--url", server.address)
        shown = json.loads(run("status", "--json", "--url", server.address)[1])
    assert (shown["audit"]["findings"], shown["audit"]["at_s"] <= shown["now_s"]) == (0, True)


def test_database_in_memory_has_no_counts_of_rows():
    with roost_api(fleet(2, vcpus=4)) as own:
        shown = own.get("/status").json
    assert (shown["hosts"]["up"], shown["instances"], shown["agents"], shown["operations"]) == (2, None, None, None)
