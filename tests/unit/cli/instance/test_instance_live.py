"""``roost instance live-migrate|evacuate`` and ``roost migration``, on a real server with simulated agents."""

import json

import pytest

from tests.support.agents.http_agents import play_agents


def table(output):
    return [line.split() for line in output.splitlines()]


def test_instance_is_live_migrated_and_its_migration_is_shown(server, command):
    with play_agents(server):
        code, output, _ = command("instance", "create", "web", "--flavor", "vcpus=2,memory_mb=16", "--wait")
        uuid = table(output)[1][3]
        assert code == 0
        code, output, _ = command("instance", "live-migrate", "web", "--host", "host-2", "--wait")
        assert (code, table(output)[1]) == (0, ["web", "ACTIVE", "host-2", uuid, "-"])
        (head, move) = table(command("migration", "list", "--instance", "web")[1])
        assert head == ["kind", "status", "from", "to", "instance", "created", "uuid"]
        assert move[:5] == ["live", "confirmed", "host-0", "host-2", "web"]
        lines = table(command("migration", "show", move[-1])[1])
        assert ["status", "confirmed"] in lines
        assert any(line[:1] == ["created"] for line in lines)
        assert [*move[:4], move[-1]] in table(command("instance", "show", "web")[1])
        assert command("migration", "list", "--status", "moving")[1].splitlines()[1:] == []
        code, _, problem = command("instance", "live-migrate", "web", "--host", "host-2")
        assert (code, problem) == (2, "roost: --host: the instance is on host-2 already\n")


def test_host_is_evacuated_and_failures_are_reported(server, command):
    with play_agents(server) as players:
        for name, vcpus in (("web", 1), ("db", 3)):
            words = ("--flavor", f"vcpus={vcpus},memory_mb=16", "--host", "host-0", "--wait")
            assert command("instance", "create", name, *words)[0] == 0
        code, output, problem = command("instance", "evacuate", "--host", "host-0", "--json")
        assert (code, problem) == (1, "roost: 2 of 2 instances of host-0 were not evacuated\n")
        assert {each["outcome"] for each in json.loads(output)} == {"refused"}
        for host in ("host-1", "host-2"):
            assert (
                command("instance", "create", host, "--flavor", "vcpus=3,memory_mb=16", "--host", host, "--wait")[0]
                == 0
            )
        assert players.ask("DELETE", "/agents/host-0")[0] == 204
        code, output, problem = command("instance", "evacuate", "--host", "host-0", "--wait")
        assert (code, problem.splitlines()) == (
            1,
            [
                "finished evacuations: 1 of 2",
                "finished evacuations: 2 of 2",
                "roost: 1 of 2 instances of host-0 were not evacuated",
            ],
        )
        outcomes = {line[0]: line[2:4] for line in table(output)[1:3]}
        assert outcomes["db"] == ["failed", "host-0"]
        assert outcomes["web"][0] == "done"
        assert output.splitlines()[-1] == "2 instances of host-0: 1 done, 0 open, 1 not evacuated"
        assert command("instance", "evacuate", "--host", "host-1", "--to", "host-2", "--json")[0] == 1
        assert players.ask("DELETE", "/agents/host-1")[0] == 204
        for name in ("host-1", "web"):
            assert command("instance", "delete", name, "--wait")[0] == 0
        assert command("instance", "evacuate", "--host", "host-1") == (0, "no instance is on host-1\n", "")
        code, output, problem = command("instance", "evacuate", "--host", "host-9")
        assert (code, output, problem) == (4, "", "roost: no such agent: host-9\n")


def test_instance_in_an_unsuitable_status_is_reported_as_not_evacuated(server, command):
    with play_agents(server) as players:
        flavor = ("--flavor", "vcpus=1,memory_mb=16", "--wait")
        assert command("instance", "create", "web", *flavor, "--host", "host-0")[0] == 0
        assert command("instance", "resize", "web", "vcpus=2,memory_mb=16", "--wait")[0] == 0
        host = json.loads(command("instance", "list", "--json")[1])[0]["host"]
        assert players.ask("DELETE", f"/agents/{host}")[0] == 204
        code, output, problem = command("instance", "evacuate", "--host", host, "--json")
        assert (code, problem) == (1, f"roost: 1 of 1 instances of {host} were not evacuated\n")
        assert "in status VERIFY_RESIZE" in json.loads(output)[0]["problem"]


@pytest.mark.parametrize("words", [(), ("web", "--host", "host-0")])
def test_evacuate_needs_either_an_instance_or_a_host(run, words):
    code, _, problem = run("instance", "evacuate", *words)
    assert (code, "give either INSTANCE or --host" in problem) == (2, True)
