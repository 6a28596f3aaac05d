"""``roost plan make-room``, on a server with agents."""

import json

import pytest


def flavor(vcpus):
    return ("--flavor", f"vcpus={vcpus},memory_mb=16")


@pytest.fixture
def spread(command, players):
    """Spread small instances over the hosts, so that no host has room for a large one."""
    for name, host, vcpus in (("web", "host-0", 1), ("db", "host-1", 2), ("log", "host-2", 3)):
        assert command("instance", "create", name, *flavor(vcpus), "--host", host, "--wait")[0] == 0
    return players


@pytest.mark.usefixtures("spread")
def test_plan_names_the_move_and_nothing_moves(command):
    before = command("instance", "list", "--json")[1]
    code, output, _ = command("plan", "make-room", *flavor(4), "--json")
    plan = json.loads(output)
    assert (code, plan["host"], plan["at_least"]) == (0, "host-0", 1)
    (move,) = plan["moves"]
    assert (move["instance"], move["source"], move["how"]) == ("web", "host-0", "live_migrate")
    assert (move["memory_mb"], move["after"]) == (16, [])
    assert move["target"] in {"host-1", "host-2"}
    lines = command("plan", "make-room", *flavor(4))[1].splitlines()
    assert lines[0].split() == ["move", "instance", "from", "to", "how", "memory", "after", "reason"]
    assert lines[-2] == "1 move, 16 MiB of memory to copy; no plan has fewer"
    assert lines[-1].endswith("fits on host-0")
    assert command("instance", "list", "--json")[1] == before


@pytest.mark.usefixtures("spread")
def test_plan_of_a_refused_instance_can_be_carried_out(command):
    assert command("instance", "create", "large", *flavor(4), "--wait")[0] == 1
    plan = json.loads(command("plan", "make-room", "last-refused", "--json")[1])
    (move,) = plan["moves"]
    target = ("--host", move["target"], "--wait")
    assert command("instance", "live-migrate", move["instance"], *target)[0] == 0
    assert command("instance", "create", "again", *flavor(4), "--wait")[0] == 0
    hosts = {each["name"]: each["host"] for each in json.loads(command("instance", "list", "--json")[1])}
    assert hosts["again"] == plan["host"]


@pytest.mark.usefixtures("spread")
def test_plan_keeps_the_zone_of_the_request(command):
    command("aggregate", "create", "rack", "--zone", "east")
    command("aggregate", "set", "rack", "--join", "host-1")
    plan = json.loads(command("plan", "make-room", *flavor(4), "--zone", "east", "--json")[1])
    assert ([move["instance"] for move in plan["moves"]], plan["host"]) == (["db"], "host-1")


@pytest.mark.usefixtures("spread")
def test_without_a_plan_the_reason_is_an_error(command):
    code, output, error = command("plan", "make-room", *flavor(5))
    assert (code, output) == (6, "no plan\n")
    assert error == (
        "roost: no host would take the request if it had fewer instances: 0 of 3 hosts: 3 lack 5 VCPU or more\n"
    )


@pytest.mark.usefixtures("spread")
def test_request_that_fits_needs_no_moves(command):
    code, output, _ = command("plan", "make-room", *flavor(3))
    assert (code, output.splitlines()[-1]) == (0, "vcpus=3,memory_mb=16 fits on host-0 without moves")


def test_plan_needs_one_request(command):
    assert "give NAME, or a request by --flavor or --request" in command("plan", "make-room")[2]
    assert "give NAME, or a request by" in command("plan", "make-room", "last", *flavor(1))[2]
    assert "the flavor is missing" in command("plan", "make-room", "--zone", "east")[2]
    code, _, error = command("plan", "make-room", *flavor(1), "--moves", "11")
    assert code == 2
    assert "--moves" in error
