"""``roost plan apply``, on a server with agents."""

import json
from datetime import UTC, datetime, timedelta

import pytest


def flavor(vcpus):
    return ("--flavor", f"vcpus={vcpus},memory_mb=16")


@pytest.fixture
def plan(command, players, tmp_path):  # noqa: ARG001  # the agents play
    """Write a plan with two moves to a file; return its path."""
    for name, host in (("web", "host-0"), ("db", "host-1")):
        assert command("instance", "create", name, *flavor(1), "--host", host, "--wait")[0] == 0
    uuids = {each["name"]: each["uuid"] for each in json.loads(command("instance", "list", "--json")[1])}
    moves = [
        {"number": 1, "instance_uuid": uuids["web"], "source": "host-0", "target": "host-2", "reason": "ignored"},
        {"number": 2, "instance_uuid": uuids["db"], "source": "host-1", "target": "host-0", "after": [1]},
    ]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"moves": moves}))
    return str(path)


def hosts_of(command):
    """Return the host of each instance, by name."""
    return {each["name"]: each["host"] for each in json.loads(command("instance", "list", "--json")[1])}


def test_rehearsal_moves_nothing_and_the_plan_then_moves_all(command, plan):
    before = hosts_of(command)
    code, output, _ = command("plan", "apply", plan, "--dry-run")
    assert (code, output.splitlines()[-1], hosts_of(command)) == (0, "2 done, 0 failed, 0 skipped", before)
    code, output, _ = command("plan", "apply", plan, "--json")
    operation = json.loads(output)
    assert (code, operation["kind"], operation["outcome"]) == (0, "apply", "done")
    assert [move["state"] for move in operation["plan"]["moves"]] == ["done", "done"]
    assert hosts_of(command) == {"web": "host-2", "db": "host-0"}


def test_only_some_moves_are_made(command, plan):
    code, output, _ = command("plan", "apply", plan, "--only", "2")
    assert (code, output.splitlines()[-1]) == (0, "1 done, 0 failed, 0 skipped")
    assert hosts_of(command) == {"web": "host-0", "db": "host-0"}
    assert "has no move 7: give numbers of its moves" in command("plan", "apply", plan, "--only", "7")[2]


def test_move_from_another_host_fails_and_stops_those_that_need_it(command, plan):
    assert command("instance", "live-migrate", "web", "--host", "host-1", "--wait")[0] == 0
    for options in (("--dry-run",), ()):
        code, output, _ = command("plan", "apply", plan, *options)
        assert (code, output.splitlines()[-1]) == (1, "0 done, 1 failed, 1 skipped")
        assert "is on host-1, and not on host-0" in output
    assert hosts_of(command) == {"web": "host-1", "db": "host-1"}


def test_plan_waits_for_its_window_until_the_deadline(command, plan):
    window = f"{datetime.now(UTC) + timedelta(hours=12):%H:00-%H:59}"
    before = hosts_of(command)
    code, output, error = command("plan", "apply", plan, "--window", window, "--deadline", "0.5")
    assert (code, output.splitlines()[-1], hosts_of(command)) == (1, "0 done, 0 failed, 2 skipped", before)
    wait, *_ = error.splitlines()
    assert wait.startswith("waiting for the window at ")
    assert wait.endswith(f"{window.partition('-')[0]}:00Z")
    assert command("plan", "apply", plan, "--window", window, "--window", "00:00-24:00")[0] == 0


def test_wrong_windows_move_nothing(command, plan):
    before = hosts_of(command)
    code, _, error = command("plan", "apply", plan, "--window", "sunday@1-2")
    problem = "the window 'sunday@1-2' must have the form HH:MM-HH:MM or sat,sun@HH:MM-HH:MM"
    assert (code, error) == (2, f"roost: {problem}\n")
    many = [word for _ in range(21) for word in ("--window", "00:00-24:00")]
    assert "give at most 20 windows, not 21" in command("plan", "apply", plan, *many)[2]
    assert hosts_of(command) == before


def test_file_without_moves_is_refused(command, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("{}")
    assert "has no moves" in command("plan", "apply", str(path))[2]
