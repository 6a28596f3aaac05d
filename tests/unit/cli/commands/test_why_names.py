"""``roost why`` on a server: decisions by the names of instances, and by the beginnings of uuids."""

import json

import pytest

from roost.simulator.stable_uuids import uuid_of

SMALL = ("--flavor", "vcpus=1,memory_mb=16")


@pytest.fixture
def why(command):
    """Return a function that runs ``roost why`` on the server."""
    return lambda *words: command("why", *words)


def heading(result):
    """Return the uuid in the first line of an explanation."""
    code, output, error = result
    assert (code, error) == (0, "")
    assert output.startswith("decision ")
    return output.split()[1].rstrip(":")


@pytest.mark.usefixtures("players")
def test_instance_is_explained_by_name_uuid_and_decision(instance, why):
    assert instance("create", "web", *SMALL, "--wait")[0] == 0
    shown = json.loads(instance("show", "web", "--json")[1])
    uuid, decision = shown["uuid"], shown["decision"]
    assert heading(why("web")) == decision
    assert heading(why(uuid)) == decision
    assert heading(why(uuid.upper())) == decision
    assert heading(why(decision)) == decision
    assert heading(why(decision.replace("-", "")[:31])) == decision
    assert heading(why("last")) == decision
    assert why("last", "--replay")[:2] == (
        0,
        f"{why('last')[1].splitlines()[0]}\nthe replay is identical, to the last bit\n",
    )
    assert instance("delete", "web", "--wait")[0] == 0
    assert heading(why("web")) == decision


@pytest.mark.usefixtures("players")
def test_all_decisions_of_an_instance_are_listed_newest_first(instance, why):
    assert instance("create", "web", *SMALL, "--wait")[0] == 0
    assert instance("migrate", "web", "--wait")[0] == 0
    assert instance("resize", "web", "vcpus=99", "--wait")[0] == 1
    lines = [line.split() for line in why("--instance", "web")[1].splitlines()]
    assert lines[0] == ["decided", "outcome", "instances", "uuid", "hosts", "or", "reason"]
    assert [line[2:4] for line in lines[1:]] == [["refused", "1"], ["granted", "1"], ["granted", "1"]]
    newest, *_, oldest = json.loads(why("--instance", "web", "--format", "json")[1])
    assert "VCPU" in newest["reason"]
    assert heading(why("web")) == newest["uuid"] != oldest["uuid"]


def test_claim_is_explained_by_its_uuid(server, why):
    body = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 16}}
    for _ in range(2):
        status, _, decision = server.ask("POST", "/v1/decisions", body, headers={"x-auth-token": "admin"})
        assert status == 201
    (pick,) = decision["picks"]
    assert heading(why(pick["instance_uuid"])) == decision["uuid"]
    assert len(json.loads(why("--instance", pick["instance_uuid"], "--format", "json")[1])) == 1


def test_ambiguous_name_lists_its_candidates(server, instance, why):
    for _ in range(2):
        assert instance("create", "twin", *SMALL)[0] == 0
    twins = json.loads(instance("list", "--name", "twin", "--json")[1])
    code, output, error = why("twin")
    assert (code, output) == (2, "")
    assert error.startswith("roost: 2 instances are called 'twin'; use a uuid: ")
    assert all(each["uuid"] in error for each in twins)
    uuids = [
        server.ask("POST", "/v1/decisions", {"flavor": {"vcpus": 1}}, headers={"x-auth-token": "admin"})[2]["uuid"]
        for _ in range(2)
    ]
    code, _, error = why(uuids[0][:6])
    assert (code, error.startswith(f"roost: several decisions begin with '{uuids[0][:6]}': ")) == (2, True)
    assert all(uuid in error for uuid in uuids)


def test_unknown_name_is_refused(why):
    for name in ("none", "c0ff", uuid_of("none")):
        assert why(name) == (4, "", f"roost: no such decision or instance: {name}\n")
    assert why("last") == (4, "", "roost: no decision is stored\n")
    assert why("last-refused") == (4, "", "roost: no refusal is stored\n")


def test_settings_of_a_replay_leave_the_server_of_the_environment(server, run, monkeypatch, tmp_path):
    server.ask("POST", "/v1/decisions", {"flavor": {"vcpus": 1}}, headers={"x-auth-token": "admin"})
    settings = tmp_path / "policy.toml"
    settings.write_text("[scheduler]\nmax_attempts = 1\n", encoding="utf-8")
    monkeypatch.setenv("ROOST_URL", server.address)
    code, output, error = run("why", "last", "--replay", "--config", settings)
    assert (code, error, output.splitlines()[1]) == (0, "", "the replay differs in: alternates")


def test_summary_and_settings_of_a_replay_work_on_a_server(server, why, tmp_path):
    body = {"flavor": {"name": "huge", "vcpus": 99}}
    for sentence in ("1 request was refused", "2 requests were refused"):
        server.ask("POST", "/v1/decisions", body, headers={"x-auth-token": "admin"})
        assert why("--summary")[1].splitlines()[0] == sentence
    settings = tmp_path / "policy.toml"
    settings.write_text("[scheduler]\nmax_attempts = 1\n", encoding="utf-8")
    code, output, _ = why("last-refused", "--replay", "--config", settings)
    assert (code, output.splitlines()[1]) == (0, "the replay is identical, to the last bit")
    settings.write_text('[filter_scheduler]\nweight_classes = ["ram"]\n', encoding="utf-8")
    code, _, error = why("last-refused", "--replay", "--config", settings)
    assert (code, "names code, which a server does not accept" in error) == (3, True)
