"""Changes of instances in place, and the drain of a host, with real processes and the fake driver."""

import json

import pytest

from tests.support.fleets.products import ROOT, roost
from tests.support.servers.clusters import hosts_up, running_agents
from tests.support.servers.servers import ADMIN, serve
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

HOSTS = ("fake-1", "fake-2", "fake-3")


@pytest.fixture
def server(tmp_path):
    words = ("--host", "fake", "--fleet", 3)
    with serve(noun="up", folder=tmp_path) as found, running_agents(found, tmp_path, *words):
        wait_until(lambda: hosts_up(found) == set(HOSTS))
        yield found


def run_local(*words):
    """Run a command; return its JSON output."""
    result = roost(*words, "--json", cwd=ROOT)
    assert result.returncode == 0, (result.stdout, result.stderr)
    return json.loads(result.stdout)


def run(server, *words):
    """Run a command against the server; return its JSON output."""
    return run_local(*words, "--url", server.address)


def instance(server, name):
    return run(server, "instance", "show", run(server, "instance", "list", "--name", name)[0]["uuid"])


def used(server):
    hosts = server.ask("GET", "/v1/hosts", headers=ADMIN)[2]["hosts"]
    return {each["host"]: each["resources"]["VCPU"]["used"] for each in hosts}


def traits(server, host):
    uuid = run(server, "host", "show", host)["uuid"]
    return server.ask("GET", f"/placement/resource_providers/{uuid}/traits")[2]["traits"]


def test_instances_change_in_place_and_leave_a_drained_host(server, tmp_path):
    server.ask("PUT", "/v1/images/debian", {"id": "debian-12"}, headers=ADMIN)
    flavor = ("--flavor", "vcpus=2,memory_mb=64")
    for name in ("one", "two", "three", "four"):
        run(server, "instance", "create", name, *flavor, "--host", "fake-1", "--wait")
    assert used(server) == {"fake-1": 8, "fake-2": 0, "fake-3": 0}

    run(server, "instance", "rebuild", "one", "--image", "debian", "--wait")
    run(server, "instance", "reboot", "one", "--wait")
    (shelved,) = run(server, "instance", "shelve", "one", "--wait")["instances"]
    assert (shelved["status"], shelved["host"]) == ("SHELVED_OFFLOADED", "")
    assert sum(used(server).values()) == 6
    (back,) = run(server, "instance", "unshelve", "one", "--wait")["instances"]
    assert (back["status"], back["fault"]) == ("ACTIVE", "")
    assert sum(used(server).values()) == 8
    run(server, "instance", "stop", "two", "--wait")
    status, _, problem = server.ask("POST", f"/v1/instances/{back['uuid']}/reset", {}, headers=ADMIN)
    assert (status, problem["detail"]) == (
        409,
        (
            f"the instance {back['uuid']} cannot reset in status ACTIVE: it has to be in ERROR; possible now: "
            "delete, stop, reboot, resize, migrate, live-migrate, evacuate, rebuild, shelve"
        ),
    )

    plan = run(server, "host", "drain", "fake-1", "--dry-run")
    assert {each["name"]: each["how"] for each in plan["moves"] if each["name"] != "one"} == {
        "two": "migrate",
        "three": "live_migrate",
        "four": "live_migrate",
    }
    # A dry run reads the database while its server runs.
    assert run_local("host", "drain", "fake-1", "--dry-run", "--data", tmp_path)["moves"] == plan["moves"]
    assert used(server)["fake-1"] >= 6
    drain = run(server, "host", "drain", "fake-1")
    assert (drain["outcome"], drain["problem"]) == ("done", "")
    target = {each["name"]: each["host"] for each in drain["instances"]}
    assert target == {each["name"]: each["host"] for each in plan["moves"]}
    assert {each["name"]: each["status"] for each in run(server, "instance", "list")} == {
        "one": "ACTIVE",
        "two": "SHUTOFF",
        "three": "ACTIVE",
        "four": "ACTIVE",
    }
    assert (used(server)["fake-1"], sum(used(server).values())) == (0, 8)
    assert run(server, "host", "show", "fake-1")["disabled_reason"] == "it is drained"

    run(server, "host", "set", "fake-1", "--enable")
    wait_until(lambda: "COMPUTE_STATUS_DISABLED" not in traits(server, "fake-1"))
    run(server, "instance", "create", "wide", "--flavor", "vcpus=16,memory_mb=64", "--host", "fake-1", "--wait")
    for host in HOSTS[1:]:
        run(server, "host", "set", host, "--disable")
    plan = run(server, "host", "drain", "fake-1", "--dry-run")
    assert [(each["how"], each["host"]) for each in plan["moves"]] == [("", "")]
    refusal = roost("host", "drain", "fake-1", "--url", server.address, cwd=ROOT)
    assert (refusal.returncode, refusal.stderr.splitlines()[-1]) == (1, "roost: 1 of 1 instances stayed on fake-1")
    how = "fake-1 gets no new instances until `roost host set fake-1 --enable`"
    assert refusal.stdout.splitlines()[-3::2] == ["0 gone, 1 stayed", how]
    assert "0 of " in refusal.stdout
    assert instance(server, "wide")["status"] == "ACTIVE"
