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


def test_why_offers_a_plan_for_a_refused_request(command, spread):
    assert command("instance", "create", "large", *flavor(4), "--wait")[0] == 1
    why = json.loads(command("why", "last-refused", "--json")[1])
    uuid = why["decision"]["uuid"]
    assert why["plan"] == {"moves": 1, "host": "host-0"}
    hint = f"with 1 move of instances it fits on host-0: `roost plan make-room {uuid}`"
    assert hint in " ".join(command("why", "last-refused")[1].split())
    # Without the option, the server does not search.
    status, plain = spread.ask("GET", f"/decisions/{uuid}/why")
    assert (status, plain["plan"]) == (200, None)


@pytest.mark.usefixtures("spread")
def test_why_offers_no_plan_if_none_exists_or_the_request_was_granted(command):
    assert command("instance", "create", "huge", *flavor(5), "--wait")[0] == 1
    assert json.loads(command("why", "last-refused", "--json")[1])["plan"] is None
    assert json.loads(command("why", "web", "--json")[1])["plan"] is None
    assert "roost plan" not in command("why", "last-refused")[1]


@pytest.mark.usefixtures("spread")
def test_why_says_that_a_refused_request_fits_by_now(command):
    assert command("instance", "create", "large", *flavor(4), "--wait")[0] == 1
    assert command("instance", "delete", "web", "--wait")[0] == 0
    assert "by now, the request fits on host-0" in command("why", "last-refused")[1]


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


@pytest.mark.usefixtures("spread")
def test_consolidate_prints_emptied_hosts_and_moves(command):
    before = command("instance", "list", "--json")[1]
    plan = json.loads(command("plan", "consolidate", "--hosts", "1", "--json")[1])
    assert [each["host"] for each in plan["emptied"]] == ["host-0"]
    assert [(move["instance"], move["target"]) for move in plan["moves"]] == [("web", "host-2")]
    code, output, _ = command("plan", "consolidate", "--hosts", "1")
    lines = output.splitlines()
    assert (code, lines[0].split(), lines[1].split()) == (
        0,
        ["emptied", "host", "moves", "memory"],
        ["host-0", "1", "16", "MiB"],
    )
    assert lines[-2:] == [
        "1 move, 16 MiB of memory to copy; no plan for 1 host has fewer",
        "1 host of 3 empty then, 0 now; as many as requested",
    ]
    assert command("instance", "list", "--json")[1] == before


@pytest.mark.usefixtures("spread")
def test_consolidate_without_a_plan_gives_the_reason(command):
    for name, host, vcpus in (("a", "host-0", 3), ("b", "host-1", 2), ("c", "host-2", 1)):
        assert command("instance", "create", name, *flavor(vcpus), "--host", host, "--wait")[0] == 0
    code, output, error = command("plan", "consolidate")
    assert (code, output) == (6, "no plan\n")
    assert error == "roost: the instances of no host fit on the others, not even those of host-0\n"


@pytest.mark.usefixtures("spread")
def test_consolidate_refuses_wrong_questions(command):
    assert "give one of --hosts and --share" in command("plan", "consolidate", "--hosts", "1", "--share", "10")[2]
    code, _, error = command("plan", "consolidate", "--zone", "north")
    assert (code, error) == (4, "roost: no such availability zone: north\n")
    assert command("plan", "consolidate", "--moves", "1001")[0] == 2


@pytest.fixture
def crowded(command, spread):
    """Add an instance, so that host-2 is emptied only after a move from host-0 to host-1."""
    assert command("instance", "create", "more", *flavor(2), "--host", "host-0", "--wait")[0] == 0
    return spread


@pytest.mark.usefixtures("crowded")
def test_drain_makes_room_and_its_plan_can_be_applied(command, tmp_path):
    assert command("host", "drain", "host-2", "--check")[0] == 1
    code, output, _ = command("plan", "drain", "host-2", "--json")
    plan = json.loads(output)
    moves = [(move["instance"], move["source"], move["target"]) for move in plan["moves"]]
    assert (code, moves) == (0, [("more", "host-0", "host-1"), ("log", "host-2", "host-0")])
    assert ([each["host"] for each in plan["emptied"]], plan["extra"], plan["staying"]) == (["host-2"], 1, [])
    lines = command("plan", "drain", "HOST-2")[1].splitlines()
    assert lines[0].split() == ["emptied", "host", "moves", "memory"]
    assert lines[-2:] == ["2 moves, 32 MiB of memory to copy; 1 of them to make room", "1 host of 1 empty then"]
    path = tmp_path / "plan.json"
    path.write_text(output)
    assert command("plan", "apply", str(path), "--dry-run")[0] == 0
    assert command("plan", "apply", str(path))[0] == 0
    assert "host-2" not in {each["host"] for each in json.loads(command("instance", "list", "--json")[1])}


@pytest.mark.usefixtures("crowded")
def test_drain_lists_the_instances_that_stay(command):
    code, output, error = command("plan", "drain", "host-2", "--extra", "0")
    assert (code, error) == (6, "roost: 1 of 1 hosts would not be emptied\n")
    lines = output.splitlines()
    assert lines[0].split() == ["staying", "instance", "host", "problem"]
    assert lines[1].startswith("log")
    assert "lack 3 VCPU or more" in lines[1]
    assert lines[-1] == "0 hosts of 1 empty then"


@pytest.mark.usefixtures("crowded")
def test_drain_of_a_rack_moves_nothing_into_it(command):
    plan = json.loads(command("plan", "drain", "--rack", "r1", "--json")[1])
    assert {move["target"] for move in plan["moves"]} <= {"host-2"}
    assert ({each["host"] for each in plan["staying"]}, plan["hosts"]) == ({"host-0", "host-1"}, 2)


def test_drain_refuses_wrong_questions(command):
    assert "give HOST, --aggregate, --zone or --rack" in command("plan", "drain")[2]
    assert command("plan", "drain", "none") == (4, "", "roost: no such host: none\n")
    command("aggregate", "create", "rack")
    assert command("plan", "drain", "rack")[2].endswith("rack is an aggregate: use --aggregate rack\n")
    assert command("plan", "drain", "host-0", "--extra", "1001")[0] == 2


@pytest.mark.usefixtures("players")
def test_balance_prints_the_spread_before_and_after(command):
    for name in ("a", "b", "c"):
        assert command("instance", "create", name, *flavor(1), "--host", "host-0", "--wait")[0] == 0
    code, output, _ = command("plan", "balance", "--moves", "2")
    lines = output.splitlines()
    assert (code, lines[0].split()[:4]) == (0, ["move", "instance", "from", "to"])
    assert [line.split() for line in lines[-5:]] == [
        ["spread", "deviation", "mean", "fullest", "emptiest"],
        ["now", "35.4", "%", "25.0", "%", "75.0", "%", "0.0", "%"],
        ["then", "0.0", "%", "25.0", "%", "25.0", "%", "25.0", "%"],
        [],
        ["2", "moves,", "32", "MiB", "of", "memory", "to", "copy;", "used", "VCPU", "of", "3", "hosts"],
    ]
    plan = json.loads(command("plan", "balance", "--moves", "1", "--json")[1])
    assert (len(plan["moves"]), plan["after"]["fullest"]) == (1, 0.5)


@pytest.mark.usefixtures("players")
def test_balanced_hosts_are_no_error(command):
    code, output, _ = command("plan", "balance")
    assert (code, output.splitlines()[-1]) == (0, "no move of an instance makes the used shares noticeably more equal")
    code, _, error = command("plan", "balance", "--class", "FPGA")
    assert (code, error) == (2, "roost: no enabled host offers FPGA: name another class or zone\n")
