"""``roost host drain`` of several hosts, on a server with agents."""

import json

import pytest

from roost.cli.views.operation_view import stay_advice

RACK = {"host-0", "host-1"}
SMALL = ("--flavor", "vcpus=2,memory_mb=16")


@pytest.fixture
def instances(command, players):
    """Create one instance on each of the first two hosts."""
    for name, host in (("web", "host-0"), ("db", "host-1")):
        assert command("instance", "create", name, *SMALL, "--host", host, "--wait")[0] == 0
    return players


def hosts_of(command):
    """Return the host of each instance, by name."""
    return {each["name"]: each["host"] for each in json.loads(command("instance", "list", "--json")[1])}


@pytest.mark.usefixtures("instances")
def test_hosts_of_an_aggregate_are_disabled_and_then_drained(command):
    command("aggregate", "create", "rack", "--zone", "east")
    command("aggregate", "set", "rack", "--join", "host-0", "--join", "host-1")
    code, output, _ = command("host", "drain", "HOST-0", "--aggregate", "rack", "--dry-run")
    assert code == 0
    assert output.splitlines()[-1] == "in total: 2 would go, 0 would stay"
    code, output, _ = command("drain", "--zone", "east", "--hosts-at-once", "2", "--json")
    results = json.loads(output)
    assert (code, [each["host"] for each in results]) == (0, ["host-0", "host-1"])
    assert [each["operation"]["outcome"] for each in results] == ["done", "done"]
    # Neither instance moved to the other host of the rack.
    assert hosts_of(command) == {"web": "host-2", "db": "host-2"}
    services = json.loads(command("service", "list", "--disabled", "--json")[1])
    assert {each["host"] for each in services} == {"host-0", "host-1"}


@pytest.mark.usefixtures("instances")
def test_plan_of_several_hosts_agrees_with_their_drain(command):
    command("group", "create", "apart", "--policy", "anti-affinity")
    for name, host in (("one", "host-0"), ("two", "host-2")):
        create = ("instance", "create", name, *SMALL, "--group", "apart", "--host", host, "--wait")
        assert command(*create)[0] == 0
    code, output, error = command("drain", "host-0", "host-1", "none", "--dry-run", "--json")
    planned = json.loads(output)
    # On host-2 there is room for one instance only, and "one" must not join "two".
    assert (code, error) == (1, "roost: 3 of 3 hosts were not drained\n")
    assert planned[2] == {"host": "none", "plan": None, "problem": "no such host: none"}
    moves = {each["name"]: each["host"] for result in planned[:2] for each in result["plan"]["moves"]}
    assert moves == {"web": "host-2", "one": "", "db": ""}
    text = command("drain", "host-0", "host-1", "--dry-run")[1].splitlines()
    command("drain", "host-0", "host-1")
    left = {name: host for name, host in hosts_of(command).items() if host in {"host-0", "host-1"}}
    assert left.keys() == {name for name, host in moves.items() if not host}
    assert text[-1] == f"in total: {3 - len(left)} would go, {len(left)} would stay"


@pytest.mark.usefixtures("instances")
def test_drain_of_a_rack_moves_all_its_instances_to_other_racks(command):
    assert {each["host"] for each in json.loads(command("host", "list", "--rack", "r1", "--json")[1])} == RACK
    code, output, _ = command("host", "drain", "--rack", "r1", "--check", "--at-once", "1", "--json")
    assert (code, {each["host"] for each in json.loads(output)}) == (0, RACK)
    assert hosts_of(command) == {"web": "host-2", "db": "host-2"}


@pytest.mark.usefixtures("instances")
def test_checked_drain_changes_nothing_if_an_instance_would_stay(command):
    assert command("instance", "create", "wide", *SMALL, "--host", "host-2", "--wait")[0] == 0
    before = hosts_of(command)
    code, output, error = command("host", "drain", "--rack", "r1", "--check")
    assert (code, error) == (1, "roost: 1 of 2 hosts would not be drained: nothing was changed\n")
    assert output.splitlines()[-1] == "in total: 1 would go, 1 would stay"
    assert hosts_of(command) == before
    assert json.loads(command("service", "list", "--disabled", "--json")[1]) == []
    assert json.loads(command("operation", "list", "--kind", "drain", "--json")[1]) == []


@pytest.mark.usefixtures("instances")
def test_instance_without_a_target_gets_a_remedy(command):
    flavor = "vcpus=3,memory_mb=16"
    assert command("instance", "create", "wide", "--flavor", flavor, "--host", "host-2", "--wait")[0] == 0
    code, output, error = command("host", "drain", "host-0", "host-1", "none")
    assert (code, error.splitlines()[-1]) == (1, "roost: 3 of 3 hosts were not drained")
    lines = output.splitlines()
    assert any(line.startswith("none: no such ") for line in lines)
    for name in ("web", "db"):
        assert any(line.startswith(f"{name}: `roost why {name}` explains") for line in lines)
    assert "in total: 0 gone, 2 stayed" in lines
    assert lines[-1] == "host-1 gets no new instances until `roost host set host-1 --enable`"
    assert "refused: " in command("why", "web")[1]


def test_drain_needs_a_host(command):
    assert "give HOST, --aggregate, --zone or --rack" in command("host", "drain")[2]
    assert command("host", "drain", "--zone", "none")[::2] == (4, "roost: no host is in this zone\n")
    both = ("--zone", "none", "--rack", "r1")
    assert command("host", "drain", *both)[::2] == (4, "roost: no host is in this zone and rack\n")


def test_short_names_mean_their_commands(command):
    assert command("ps") == command("instance", "list")


@pytest.mark.parametrize(
    ("status", "problem", "advice"),
    [
        ("VERIFY_RESIZE", "is not moved", "`roost instance confirm web`"),
        ("ERROR", "is not moved", "`roost instance reset web`"),
        ("BUILD", "is not moved", "wait until it is built"),
        ("ACTIVE", "the instance cannot migrate now: its task is rebooting", "wait until its task ends"),
        ("ACTIVE", "No valid host was found.", "`roost why web`"),
    ],
)
def test_advice_depends_on_status_and_problem(status, problem, advice):
    row = {"name": "web", "status": status, "problem": problem}
    assert all(advice in stay_advice(row, is_decided=is_decided) for is_decided in (True, False))


def test_name_of_an_aggregate_suggests_its_option(command):
    command("aggregate", "create", "rack")
    for words in (("drain", "rack"), ("drain", "rack", "--dry-run"), ("host", "set", "rack", "--enable")):
        problem = "roost: no such host: rack; rack is an aggregate: use --aggregate rack\n"
        assert command(*words) == (4, "", problem), words
    assert command("drain", "none") == (4, "", "roost: no such host: none\n")
