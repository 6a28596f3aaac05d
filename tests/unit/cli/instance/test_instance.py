"""``roost instance`` on a real server, with agents that a thread simulates."""

import json
import re

from roost.app import open_roost
from roost.cli.views.instance_view import instance_lines
from roost.simulator.stable_uuids import uuid_of
from tests.support.agents.http_agents import HOSTS, play_agents
from tests.support.fleets.products import fleet


def test_an_instance_is_created_shown_stopped_started_and_deleted(server, instance):
    with play_agents(server) as players:
        code, output, _ = instance("create", "web", "--flavor", "vcpus=2,memory_mb=16", "--wait")
        head, line = output.splitlines()
        uuid = line.split()[3]
        assert (code, head.split(), line.split()) == (
            0,
            ["name", "status", "host", "uuid", "fault"],
            ["web", "ACTIVE", "host-0", uuid, "-"],
        )
        assert [re.sub(r"\d+ s ago", "now", each).split() for each in instance("list")[1].splitlines()] == [
            ["name", "status", "task", "host", "created", "uuid"],
            ["web", "ACTIVE", "-", "host-0", "now", uuid],
        ]
        text = instance("show", "web")[1]
        assert re.search(r"^status +ACTIVE$", text, re.MULTILINE)
        assert re.search(r"^task +-$", text, re.MULTILINE)
        assert re.search(r"^decided 20\d\d-.*: granted, with the alternates host-1, host-2$", text, re.MULTILINE)
        assert re.search(r"^  host-0 +host-0 +claimed +-$", text, re.MULTILINE)
        assert re.search(r"^  20\d\d-\S+ \S+Z +spawn\.built +host host-0$", text, re.MULTILINE)
        assert re.search(r"^  host-0 +VCPU +2$", text, re.MULTILINE)
        assert uuid_of("host-0") not in text
        assert json.loads(instance("show", uuid, "--json")[1])["status"] == "ACTIVE"
        assert instance("stop", "web", "--wait")[0] == 0
        assert instance("stop", "web")[::2] == (
            5,
            (
                "roost: the instance web cannot stop in status SHUTOFF: it has to be in ACTIVE; "
                "possible now: delete, start, resize, migrate, evacuate, rebuild, shelve\n"
            ),
        )
        assert "ACTIVE" in instance("start", uuid, "--wait")[1]
        code, output, _ = instance("delete", "web", "--wait", "--json")
        assert (code, json.loads(output)["outcome"]) == (0, "done")
        assert instance("list")[1].splitlines()[1:] == []
        assert [each["uuid"] for each in json.loads(instance("list", "--status", "DELETED", "--json")[1])] == [uuid]
        assert set(players.used().values()) == {0}


def test_events_can_be_followed_by_instance_name(server, command):
    with play_agents(server):
        (uuid,) = json.loads(command("instance", "create", "web", "--flavor", "vcpus=2,memory_mb=16", "--json")[1])[
            "instances"
        ]
        code, output, _ = command("events", "--instance", "web", "--after", "start-0", "--count", "1", "--json")
        assert (code, uuid in output) == (0, True)
        assert command("events", "--instance", "nobody") == (4, "", "roost: no such instance: nobody\n")


def test_failed_build_is_shown_with_its_attempts(server, instance, command):
    with play_agents(server, failing=HOSTS):
        code, output, error = instance("create", "bad", "--flavor", "vcpus=2,memory_mb=16", "--wait")
        assert (code, output.splitlines()[1].split()[:3]) == (1, ["bad", "ERROR", "-"])
        assert "has no network" in error
        text = instance("show", "bad")[1]
        assert len(re.findall(r"^  host-\d +host-\d +claimed +host-\d has no network$", text, re.MULTILINE)) == 3
        problems = "host host-0: host-0 has no network; host host-1: host-1 has no network"
        fault = json.loads(instance("show", "bad", "--json")[1])["fault"]
        assert problems in fault
        assert command("why", "bad")[1].splitlines()[-1] == f"instance bad is ERROR: {fault}"
        (operation,) = json.loads(command("operation", "list", "--failed", "--json")[1])
        assert problems in operation["problem"]
        assert instance("delete", "bad", "--wait")[0] == 0


def test_document_creates_several_instances_and_a_shared_name_is_refused(server, instance, tmp_path):
    (tmp_path / "two.json").write_text('{"flavor": {"name": "small", "vcpus": 1, "memory_mb": 16}, "count": 1}')
    with play_agents(server):
        for _ in range(2):
            document = json.loads(instance("create", "twin", "--request", tmp_path / "two.json", "--json")[1])
            assert len(document["instances"]) == 1
        code, _, error = instance("show", "twin")
        twins = json.loads(instance("list", "--name", "twin", "--json")[1])
        assert (code, error.count("\n")) == (2, 1)
        assert error.startswith("roost: 2 instances are called 'twin'; use a uuid: ")
        assert all(f"{each['uuid']} (" in error for each in twins)
        for each in json.loads(instance("list", "--name", "twin", "--json")[1]):
            assert instance("delete", each["uuid"], "--wait")[0] == 0
        code, output, _ = instance("create", "row", "--request", tmp_path / "two.json", "--count", "2", "--wait")
        assert (code, [line.split()[0] for line in output.splitlines()[1:]]) == (0, ["row", "row-2"])
        assert [instance("delete", name, "--force", "--wait")[0] for name in ("row", "row-2")] == [0, 0]


REFUSED = [
    (["show", "none"], 4, "roost: no such instance: none"),
    (["stop", uuid_of("none")], 4, "no such instance"),
    (["create", "a"], 2, "the flavor is missing: give --flavor"),
    (["create", "a", "--flavor", "none"], 4, "roost: --flavor: there is no flavor 'none'"),
    (["create", "a", "--flavor", "vcpus=1", "--image", "none"], 4, "roost: --image: there is no image 'none'"),
    (["create", "a", "--flavor", "vcpus=1", "--group", "none"], 4, "roost: --group: there is no server group 'none'"),
    (["create", "a", "--flavor", "vcpus=1", "--zone", "none"], 4, "roost: --zone: no host is in a zone 'none'"),
    (["create", "a", "--flavor", "vcpus=1", "--host", "none"], 4, "roost: no such host: none"),
    (["create", "a", "--flavor", "vcpus=x"], 2, "flavor 'vcpus=x': vcpus must be a whole number, got 'x'"),
    (["create", "a", "--flavor", "vcpu=1"], 2, "unknown key 'vcpu'; did you mean 'vcpus'? The keys are vcpus, memory"),
    (["create", "", "--flavor", "vcpus=1"], 2, "NAME: "),
    (["create", "a", "--request", "none.json"], 4, "none.json"),
    (["list", "--status", "LOST"], 2, "LOST"),
    (["list", "--host", "none"], 4, "roost: no such host: none"),
]


def test_invalid_request_is_refused_in_one_sentence(instance):
    for words, code, sentence in REFUSED:
        exit_code, _, error = instance(*words)
        assert exit_code == code, (words, error)
        assert sentence in error, words


def test_database_without_a_server_accepts_requests_but_not_wait(run, tmp_path):
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(1, vcpus=4))
    place = ("--data", tmp_path)
    code, _, error = run("instance", "create", "web", "--flavor", "vcpus=1", "--wait", *place)
    assert code == 2
    assert "operations need a server" in error
    assert run("instance", "create", "web", "--flavor", "vcpus=1", *place)[0] == 0
    output = run("instance", "list", *place)[1].splitlines()[1].split()
    assert output[:4] == ["web", "BUILD", "scheduling", "-"]
    assert re.search(r"^decision +-$", run("instance", "show", "web", *place)[1], re.MULTILINE)


def test_instance_text_shows_the_reason_of_a_refusal():
    names = ("name", "task", "fault", "host", "node", "group", "project_id", "user_id", "operation", "decision")
    document = {
        **dict.fromkeys(names, ""),
        "uuid": uuid_of("i"),
        "status": "ERROR",
        "created_at_s": 0.0,
        "changed_at_s": None,
        "allocations": {},
        "attempts": [],
        "migrations": [],
        "operations": [],
        "story": [],
    }
    decision = {"decided_at_s": 0.0, "outcome": "refused", "reason": "0 of 3 hosts: 3 lack 99 VCPU or more"}
    lines = instance_lines(document, decision)
    assert lines[-1] == "decided 1970-01-01 00:00:00Z: refused, 0 of 3 hosts: 3 lack 99 VCPU or more"


def test_dry_run_prints_the_hosts_and_a_check_index(server, instance):
    code, output, error = instance("create", "web", "--flavor", "vcpus=2,memory_mb=16", "--count", "2", "--dry-run")
    assert (code, error) == (0, "")
    lines = [line.split() for line in output.splitlines()]
    assert lines[:3] == [["name", "host", "node"], ["web", "host-0", "host-0"], ["web-2", "host-1", "host-1"]]
    index = next(line[-1] for line in lines if line[:2] == ["check", "index"])
    assert instance("list")[1] == "no instances\n"
    status, _, _ = server.ask("POST", "/v1/decisions", {"flavor": {"vcpus": 3}}, headers={"x-auth-token": "admin"})
    assert status == 201
    create = ("create", "web", "--flavor", "vcpus=2,memory_mb=16", "--count", "2", "--check-index", index)
    code, output, error = instance(*create)
    assert (code, output) == (5, "")
    assert error.startswith("roost: the fleet has changed since the dry run: the choice would now be host-")
    code, output, error = instance("create", "web", "--flavor", "vcpus=99", "--dry-run", "--json")
    assert (code, json.loads(output)["outcome"]) == (6, "refused")
    assert error.startswith("roost: 0 of 3 hosts")
    assert instance("create", "web", "--flavor", "vcpus=1", "--dry-run", "--wait")[0] == 2


def test_warnings_are_printed_and_strict_refuses_them(server, instance, tmp_path):
    (tmp_path / "hint.json").write_text('{"hints": {"same_hots": ["x"]}}')
    create = ("create", "odd", "--flavor", "vcpus=1,memory_mb=16", "--request", str(tmp_path / "hint.json"))
    with play_agents(server):
        code, _, error = instance(*create, "--wait")
        assert (code, "same_hots" in error) == (0, True)
    code, output, _ = instance(*create, "--json")
    assert (code, "same_hots" in json.loads(output)["warnings"][0]) == (0, True)
    code, output, error = instance(*create, "--strict")
    assert (code, output, "same_hots" in error) == (2, "", True)


def test_each_accepted_instance_has_a_row(instance):
    code, output, _ = instance("create", "web", "--flavor", "vcpus=1", "--count", "3")
    rows = [line.split() for line in output.splitlines()[-3:]]
    assert (code, [row[0] for row in rows]) == (0, ["web", "web-2", "web-3"])
    assert len({row[1] for row in rows}) == 3
    answer = json.loads(instance("create", "db", "--flavor", "vcpus=1", "--count", "2", "--json")[1])
    assert len(answer["instances"]) == 2


def test_decisions_are_limited_to_a_period(server, command, instance):
    with play_agents(server):
        assert instance("create", "web", "--flavor", "vcpus=1", "--wait")[0] == 0

    def decisions(*words):
        return len(json.loads(command("decision", "list", "--json", *words)[1]))

    assert [decisions(*words) for words in ((), ("--until", "2001-01-01"), ("--until", "0s"))] == [1, 0, 1]
