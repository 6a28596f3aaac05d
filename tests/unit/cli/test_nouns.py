"""The commands of aggregates, hosts and server groups, on a database and on a server."""

import json
import re

import pytest
from msgspec.structs import replace

from roost.app import open_roost
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve


@pytest.fixture
def folder(tmp_path):
    """Give the folder of a database with three hosts of 4 VCPU."""
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(3, vcpus=4))
    return tmp_path


@pytest.fixture(params=["database", "server"])
def asked(request, folder, run):
    """Run a command on the database itself, or on a server; give what it prints."""

    def on(*place):
        def asked(*words, code=0):
            found = run(*words, *place)
            assert found[0] == code, found
            return found[1] if code == 0 else found[2]

        return asked

    if request.param == "database":
        yield on("--data", folder)
    else:
        with serve(noun="up", folder=folder) as server:
            yield on("--url", server.address)


def test_an_aggregate_is_made_filled_changed_and_ended(asked):
    made = json.loads(asked("aggregate", "create", "rack", "--zone", "east", "--metadata", "ssd=true", "--json"))
    assert (made["name"], made["metadata"]) == ("rack", {"ssd": "true", "availability_zone": "east"})
    asked("aggregate", "set", "rack", "--join", "host-1", "--join", "host-2", "--unset", "ssd", "--name", "row")
    assert asked("aggregate", "list").splitlines() == [
        "name  zone  hosts  metadata  uuid",
        f"row   east      2         -  {made['uuid']}",
    ]
    assert "host-1, host-2" in asked("aggregate", "show", made["uuid"])
    assert "has 2 members" in asked("aggregate", "delete", "row", code=5)
    asked("aggregate", "set", "row", "--leave", "host-1", "--leave", "host-2")
    assert asked("aggregate", "delete", "row") == ""
    assert asked("aggregate", "show", "row", code=4) == "roost: no such aggregate: row\n"
    assert json.loads(asked("aggregate", "list", "--json")) == []


def test_hosts_are_listed_shown_and_set(asked):
    asked("host", "set", "host-1", "--disable", "--reason", "the disk fails", "--force-down")
    lines = asked("host", "list").splitlines()
    assert lines[0].split("  ")[0] == "host"
    assert "disabled, forced down" in lines[2]
    assert [each["host"] for each in json.loads(asked("host", "list", "--disabled", "--down", "--json"))] == ["host-1"]
    assert len(asked("host", "list", "--enabled", "--up").splitlines()) == 3
    assert "disabled_reason  the disk fails" in asked("host", "show", "host-1")
    told = json.loads(asked("host", "set", "host-1", "--enable", "--no-force-down", "--json"))
    assert (told["disabled"], told["disabled_reason"], told["up"]) == (False, "", True)
    assert asked("host", "show", "none", code=4) == "roost: no such host: none\n"


def test_agents_are_listed_and_shown(folder, run):
    with serve(noun="up", folder=folder) as server:
        body = {"run": uuid_of("run"), "driver": "fake", "software": "roost 1", "nodes": []}
        assert server.ask("PUT", "/v1/agents/host-1", body, headers={"x-auth-token": "admin"})[0] == 200
        place = ("--url", server.address)
        lines = run("agent", "list", *place)[1].splitlines()
        assert re.fullmatch(r"host +state +heard +driver +cell +nodes", lines[0])
        assert re.fullmatch(r"host-1  ready, up  20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ  fake    -     host-1", lines[1])
        (listed,) = json.loads(run("agent", "list", "--json", *place)[1])
        assert json.loads(run("agent", "show", "HOST-1", "--json", *place)[1]) == listed
        said = run("agent", "show", "host-1", *place)[1]
        assert re.search(r"^heard_at +20\d\d-", said, re.MULTILINE)
        assert run("agent", "show", "none", *place)[::2] == (4, "roost: no such agent: none\n")


def test_groups_are_made_and_shown(asked):
    made = json.loads(
        asked("group", "create", "web", "--policy", "anti-affinity", "--max-server-per-host", "2", "--json")
    )
    assert asked("group", "list", "--policy", "anti-affinity").splitlines() == [
        "name  policy         per host  members  uuid",
        f"web   anti-affinity         2        0  {made['uuid']}",
    ]
    assert "member_count         0" in asked("group", "show", "web")
    refused = asked("group", "create", "x", "--policy", "affinity", "--max-server-per-host", "2", code=2)
    assert refused == "roost: $.max_server_per_host: requires the policy anti-affinity, got affinity\n"


def test_hosts_are_listed_by_name_and_number(run, tmp_path):
    found = fleet(12, vcpus=4)
    with open_roost(None, tmp_path) as roost:
        roost.install(replace(found, providers=found.providers[::-1], hosts=found.hosts[::-1]))
    lines = run("host", "list", "--data", tmp_path)[1].splitlines()[1:]
    assert [line.split()[0] for line in lines] == [f"host-{number}" for number in range(12)]


def test_flavors_are_stored_and_deleted(asked):
    asked("flavor", "set", "small", "--vcpus", "2", "--memory-mb", "2048", "--extra-spec", "hw:cpu_policy=shared")
    assert [line.split() for line in asked("flavor", "list").splitlines()[1:]] == [
        ["small", "2", "2,048", "0", "0", "0", "hw:cpu_policy=shared"]
    ]
    assert json.loads(asked("flavor", "show", "small", "--json"))["vcpus"] == 2
    assert "hw:cpu_policy" in asked("flavor", "set", "small", "--extra-spec", "hw:cpu_policy=some", code=2)
    asked("flavor", "delete", "small")
    assert asked("flavor", "show", "small", code=4) == "roost: no such flavor: small\n"


@pytest.mark.shows("S011")
def test_images_are_stored_and_deleted(asked):
    asked("image", "set", "arm", "--disk-format", "qcow2", "--property", "architecture=armv7l", "--property", "os=a=b")
    assert [line.split() for line in asked("image", "list").splitlines()[1:]] == [
        ["arm", "-", "qcow2", "architecture=armv7l,", "os=a=b"]
    ]
    shown = json.loads(asked("image", "show", "arm", "--json"))
    assert shown["properties"] == {"architecture": "armv7l", "os": "a=b"}
    assert "KEY=VALUE" in asked("image", "set", "arm", "--property", "x", code=2)
    asked("image", "delete", "arm")
    assert asked("image", "show", "arm", code=4) == "roost: no such image: arm\n"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["host", "list", "--url", "http://127.0.0.1:1"], 7, "does not answer"),
        (["host", "list", "--url", "ftp://x"], 2, "--url must be http://HOST:PORT"),
        (["host", "list", "--url", "http://x", "--data", "."], 2, "--url cannot be combined with --config or --data"),
        (["host", "set", "h"], 2, "nothing to change"),
        (["aggregate", "set", "a"], 2, "nothing to change"),
        (["aggregate", "create", "a", "--metadata", "x"], 2, "'x' is not KEY=VALUE"),
        (["group", "create", "g", "--policy", "apart"], 2, "apart"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_sentence(run, words, code, sentence):
    ended, output, error = run(*words)
    assert (ended, output, error.count("\n"), sentence in error) == (code, "", 1, True), error


def test_a_database_is_read_beside_its_server_and_not_written(run, folder):
    with serve(noun="up", folder=folder):
        assert run("host", "list", "--data", folder)[0] == 0
        assert run("host", "set", "host-0", "--disable", "--data", folder)[0] == 7


def test_a_token_is_sent(run, folder):
    with serve(noun="up", folder=folder) as server:
        code, _, error = run("host", "list", "--url", server.address, "--token", "joe")
    assert (code, "role" in error) == (1, True)
