"""``roost instance`` where instances get another size or another host, on a real server with agents that are played."""

import json

from tests.unit.cli.test_instance import agents, asked, server

__all__ = ["asked", "server"]  # fixtures


def shown(asked):
    found = json.loads(asked("show", "web", "--json")[1])
    return found["status"], found["host"], sum(held["VCPU"] for held in found["allocations"].values())


def test_an_instance_is_resized_reverted_confirmed_and_migrates(server, asked):
    with agents(server):
        assert asked("create", "web", "--flavor", "vcpus=1,memory_mb=16", "--wait")[0] == 0
        _, first, _ = shown(asked)
        assert asked("resize", "web", "vcpus=3,memory_mb=16", "--wait")[0] == 0
        assert shown(asked)[::2] == ("VERIFY_RESIZE", 3)
        assert asked("revert", "web", "--wait")[0] == 0
        assert shown(asked) == ("ACTIVE", first, 1)
        assert asked("resize", "web", "vcpus=2,memory_mb=16", "--wait")[0] == 0
        assert asked("confirm", "web", "--wait")[0] == 0
        status, second, amount = shown(asked)
        assert (status, amount) == ("ACTIVE", 2)
        assert asked("migrate", "web", "--wait")[0] == 0
        assert shown(asked)[0] == "ACTIVE"
        assert shown(asked)[1] != second
        assert asked("migrate", "web", "--host", second, "--verify", "--wait")[0] == 0
        assert shown(asked)[:2] == ("VERIFY_RESIZE", second)


def test_what_cannot_be_is_said_in_a_sentence(server, asked):
    with agents(server):
        assert asked("create", "web", "--flavor", "vcpus=1,memory_mb=16", "--wait")[0] == 0
        assert asked("resize", "web", "vcpus=1,memory_mb=16")[2] == (
            "roost: $.flavor: the instance has that size already\n"
        )
        assert asked("resize", "web", "huge")[2] == "roost: $.flavor: there is no flavor 'huge'\n"
        assert asked("migrate", "web", "--host", "nowhere")[2] == "roost: $.host: there is no host 'nowhere'\n"
        code, _, said = asked("resize", "web", "vcpus=99,memory_mb=16", "--wait")
        assert (code, said.startswith("roost: No valid host")) == (1, True)
        assert shown(asked)[0] == "ACTIVE"
        assert "cannot revert in status ACTIVE" in asked("revert", "web")[2]
