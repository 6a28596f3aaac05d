"""Instances changed where they are, and a host that is left, over HTTP: a server, and agents with the fake driver."""

import json

import pytest

from tests.support.fleets.products import ROOT, roost
from tests.support.servers.clusters import running_agents, up
from tests.support.servers.servers import ADMIN, serve
from tests.support.waiting import until

pytestmark = pytest.mark.long

HOSTS = ("fake-1", "fake-2", "fake-3")


@pytest.fixture
def server(tmp_path):
    words = ("--host", "fake", "--fleet", 3)
    with serve(noun="up", folder=tmp_path) as found, running_agents(found, tmp_path, *words):
        until(lambda: up(found) == set(HOSTS))
        yield found


def printed(*words):
    """Run a command; give what it prints as JSON."""
    done = roost(*words, "--json", cwd=ROOT)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def said(server, *words):
    """Run a command at the server; give what it prints as JSON."""
    return printed(*words, "--url", server.address)


def instance(server, name):
    return said(server, "instance", "show", said(server, "instance", "list", "--name", name)[0]["uuid"])


def used(server):
    hosts = server.ask("GET", "/v1/hosts", headers=ADMIN)[2]["hosts"]
    return {each["host"]: each["resources"]["VCPU"]["used"] for each in hosts}


def traits(server, host):
    uuid = said(server, "host", "show", host)["uuid"]
    return server.ask("GET", f"/placement/resource_providers/{uuid}/traits")[2]["traits"]


def test_instances_are_changed_where_they_are_and_leave_a_host_that_is_drained(server, tmp_path):
    server.ask("PUT", "/v1/images/debian", {"id": "debian-12"}, headers=ADMIN)
    flavor = ("--flavor", "vcpus=2,memory_mb=64")
    for name in ("one", "two", "three", "four"):
        said(server, "instance", "create", name, *flavor, "--host", "fake-1", "--wait")
    assert used(server) == {"fake-1": 8, "fake-2": 0, "fake-3": 0}

    said(server, "instance", "rebuild", "one", "--image", "debian", "--wait")
    said(server, "instance", "reboot", "one", "--wait")
    (shelved,) = said(server, "instance", "shelve", "one", "--wait")["instances"]
    assert (shelved["status"], shelved["host"]) == ("SHELVED_OFFLOADED", "")
    assert sum(used(server).values()) == 6
    (back,) = said(server, "instance", "unshelve", "one", "--wait")["instances"]
    assert (back["status"], back["fault"]) == ("ACTIVE", "")
    assert sum(used(server).values()) == 8
    said(server, "instance", "stop", "two", "--wait")
    status, _, problem = server.ask("POST", f"/v1/instances/{back['uuid']}/reset", {}, headers=ADMIN)
    assert (status, problem["detail"]) == (
        409,
        f"the instance {back['uuid']} cannot reset in status ACTIVE: it has to be in ERROR",
    )

    plan = said(server, "host", "drain", "fake-1", "--dry-run")
    assert {each["name"]: each["how"] for each in plan["moves"] if each["name"] != "one"} == {
        "two": "migrate",
        "three": "live_migrate",
        "four": "live_migrate",
    }
    # A rehearsal reads the database beside its server.
    assert printed("host", "drain", "fake-1", "--dry-run", "--data", tmp_path)["moves"] == plan["moves"]
    assert used(server)["fake-1"] >= 6
    done = said(server, "host", "drain", "fake-1")
    assert (done["outcome"], done["problem"]) == ("done", "")
    went = {each["name"]: each["host"] for each in done["instances"]}
    assert went == {each["name"]: each["host"] for each in plan["moves"]}
    assert {each["name"]: each["status"] for each in said(server, "instance", "list")} == {
        "one": "ACTIVE",
        "two": "SHUTOFF",
        "three": "ACTIVE",
        "four": "ACTIVE",
    }
    assert (used(server)["fake-1"], sum(used(server).values())) == (0, 8)
    assert said(server, "host", "show", "fake-1")["disabled_reason"] == "it is drained"

    said(server, "host", "set", "fake-1", "--enable")
    until(lambda: "COMPUTE_STATUS_DISABLED" not in traits(server, "fake-1"))
    said(server, "instance", "create", "wide", "--flavor", "vcpus=16,memory_mb=64", "--host", "fake-1", "--wait")
    for host in HOSTS[1:]:
        said(server, "host", "set", host, "--disable")
    plan = said(server, "host", "drain", "fake-1", "--dry-run")
    assert [(each["how"], each["host"]) for each in plan["moves"]] == [("", "")]
    refused = roost("host", "drain", "fake-1", "--url", server.address, cwd=ROOT)
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (1, "roost: 1 of 1 instances stayed on fake-1")
    how = "fake-1 gets no new instances until `roost host set fake-1 --enable`"
    assert refused.stdout.splitlines()[-2:] == ["0 gone, 1 stayed", how]
    assert "No valid host was found" in refused.stdout
    assert instance(server, "wide")["status"] == "ACTIVE"
