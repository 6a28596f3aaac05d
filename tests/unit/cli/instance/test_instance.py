"""``roost instance`` on a real server, with agents that a thread plays."""

import json
import re

from roost.app import open_roost
from roost.cli.text.instance_text import instance_text
from roost.simulator.stable_uuids import uuid_of
from tests.support.agents.http_agents import HOSTS, at_play
from tests.support.fleets.products import fleet


def test_an_instance_is_created_shown_stopped_started_and_deleted(server, instance):
    with at_play(server) as players:
        code, said, _ = instance("create", "web", "--flavor", "vcpus=2,memory_mb=16", "--wait")
        head, line = said.splitlines()
        uuid = line.split()[3]
        assert (code, head.split(), line.split()) == (
            0,
            ["name", "status", "host", "uuid", "fault"],
            ["web", "ACTIVE", "host-0", uuid, "-"],
        )
        assert [each.split() for each in instance("list")[1].splitlines()] == [
            ["name", "status", "task", "host", "uuid"],
            ["web", "ACTIVE", "-", "host-0", uuid],
        ]
        shown = instance("show", "web")[1]
        assert re.search(r"^status +ACTIVE$", shown, re.MULTILINE)
        assert re.search(r"^task +-$", shown, re.MULTILINE)
        assert re.search(r"^decided 20\d\d-.*: granted, with the alternates host-1, host-2$", shown, re.MULTILINE)
        assert re.search(r"^host-0 +host-0 +claimed +-$", shown, re.MULTILINE)
        assert re.search(r"^20\d\d-\S+ \S+Z +spawn\.built +host host-0$", shown, re.MULTILINE)
        assert json.loads(instance("show", uuid, "--json")[1])["status"] == "ACTIVE"
        assert instance("stop", "web", "--wait")[0] == 0
        assert instance("stop", "web")[::2] == (
            5,
            f"roost: the instance {uuid} cannot stop in status SHUTOFF: it has to be in ACTIVE\n",
        )
        assert "ACTIVE" in instance("start", uuid, "--wait")[1]
        code, said, _ = instance("delete", "web", "--wait", "--json")
        assert (code, json.loads(said)["outcome"]) == (0, "done")
        assert instance("list")[1].splitlines()[1:] == []
        assert [each["uuid"] for each in json.loads(instance("list", "--status", "DELETED", "--json")[1])] == [uuid]
        assert set(players.used().values()) == {0}


def test_events_of_an_instance_are_followed_by_its_name(server, asked):
    with at_play(server):
        (uuid,) = json.loads(asked("instance", "create", "web", "--flavor", "vcpus=2,memory_mb=16", "--json")[1])[
            "instances"
        ]
        code, said, _ = asked("events", "--instance", "web", "--after", "the-start", "--count", "1", "--json")
        assert (code, uuid in said) == (0, True)
        assert asked("events", "--instance", "nobody") == (4, "", "roost: no such instance: nobody\n")


def test_what_cannot_be_built_is_told_with_its_attempts(server, instance):
    with at_play(server, failing=HOSTS):
        code, said, error = instance("create", "bad", "--flavor", "vcpus=2,memory_mb=16", "--wait")
        assert (code, said.splitlines()[1].split()[:3]) == (1, ["bad", "ERROR", "-"])
        assert "has no network" in error
        shown = instance("show", "bad")[1]
        assert len(re.findall(r"^host-\d +host-\d +claimed +host-\d has no network$", shown, re.MULTILINE)) == 3
        assert instance("delete", "bad", "--wait")[0] == 0


def test_several_are_asked_for_by_a_document_and_a_name_of_two_is_none(server, instance, tmp_path):
    (tmp_path / "two.json").write_text('{"flavor": {"name": "small", "vcpus": 1, "memory_mb": 16}, "count": 1}')
    with at_play(server):
        for _ in range(2):
            found = json.loads(instance("create", "twin", "--request", tmp_path / "two.json", "--json")[1])
            assert len(found["instances"]) == 1
        assert instance("show", "twin")[::2] == (
            2,
            "roost: 2 instances are called 'twin'; use its uuid\n",
        )
        for each in json.loads(instance("list", "--name", "twin", "--json")[1]):
            assert instance("delete", each["uuid"], "--wait")[0] == 0
        code, said, _ = instance("create", "row", "--request", tmp_path / "two.json", "--count", "2", "--wait")
        assert (code, [line.split()[0] for line in said.splitlines()[1:]]) == (0, ["row", "row-2"])
        assert [instance("delete", name, "--force", "--wait")[0] for name in ("row", "row-2")] == [0, 0]


REFUSED = [
    (["show", "none"], 4, "roost: no such instance: none"),
    (["stop", uuid_of("none")], 4, "no such instance"),
    (["create", "a"], 2, "the flavor is missing: give --flavor"),
    (["create", "a", "--flavor", "none"], 2, "there is no flavor 'none'"),
    (["create", "a", "--flavor", "vcpus=x"], 2, "flavor 'vcpus=x'"),
    (["create", "", "--flavor", "vcpus=1"], 2, "$.name"),
    (["create", "a", "--request", "none.json"], 2, "none.json"),
    (["list", "--status", "LOST"], 2, "LOST"),
]


def test_what_cannot_be_asked_is_said_in_a_sentence(instance):
    for words, code, sentence in REFUSED:
        ended, _, error = instance(*words)
        assert ended == code, (words, error)
        assert sentence in error, words


def test_a_database_that_is_not_served_takes_requests_and_nobody_waits_for_them(run, tmp_path):
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(1, vcpus=4))
    place = ("--data", tmp_path)
    code, _, error = run("instance", "create", "web", "--flavor", "vcpus=1", "--wait", *place)
    assert code == 2
    assert "operations need a server" in error
    assert run("instance", "create", "web", "--flavor", "vcpus=1", *place)[0] == 0
    said = run("instance", "list", *place)[1].splitlines()[1].split()
    assert said[:4] == ["web", "BUILD", "scheduling", "-"]
    assert re.search(r"^decision +-$", run("instance", "show", "web", *place)[1], re.MULTILINE)


def test_a_refusal_is_told_with_what_the_hosts_lack():
    found = {
        "uuid": uuid_of("i"),
        "status": "ERROR",
        "created_at_s": 0.0,
        "changed_at_s": None,
        "attempts": [],
        "migrations": [],
        "operations": [],
        "story": [],
    }
    decision = {"decided_at_s": 0.0, "outcome": "refused", "reason": "0 of 3 hosts: 3 lack 99 VCPU or more"}
    lines = instance_text(found, decision)
    assert lines[-1] == "decided 1970-01-01 00:00:00Z: refused, 0 of 3 hosts: 3 lack 99 VCPU or more"
