"""``roost instance`` where instances get another size or another host, on a real server with agents that are played."""

import json

from tests.support.agents.http_agents import at_play


def shown(instance):
    found = json.loads(instance("show", "web", "--json")[1])
    return found["status"], found["host"], sum(held["VCPU"] for held in found["allocations"].values())


def test_an_instance_is_resized_reverted_confirmed_and_migrates(server, instance):
    with at_play(server):
        assert instance("create", "web", "--flavor", "vcpus=1,memory_mb=16", "--wait")[0] == 0
        _, first, _ = shown(instance)
        assert instance("resize", "web", "vcpus=3,memory_mb=16", "--wait")[0] == 0
        assert shown(instance)[::2] == ("VERIFY_RESIZE", 3)
        assert instance("revert", "web", "--wait")[0] == 0
        assert shown(instance) == ("ACTIVE", first, 1)
        assert instance("resize", "web", "vcpus=2,memory_mb=16", "--wait")[0] == 0
        assert instance("confirm", "web", "--wait")[0] == 0
        status, second, amount = shown(instance)
        assert (status, amount) == ("ACTIVE", 2)
        assert instance("migrate", "web", "--wait")[0] == 0
        assert shown(instance)[0] == "ACTIVE"
        assert shown(instance)[1] != second
        assert instance("migrate", "web", "--host", second, "--verify", "--wait")[0] == 0
        assert shown(instance)[:2] == ("VERIFY_RESIZE", second)


def test_what_cannot_be_is_said_in_a_sentence(server, instance):
    with at_play(server):
        assert instance("create", "web", "--flavor", "vcpus=1,memory_mb=16", "--wait")[0] == 0
        assert instance("resize", "web", "vcpus=1,memory_mb=16")[2] == (
            "roost: $.flavor: the instance has that size already\n"
        )
        assert instance("resize", "web", "huge")[2] == "roost: $.flavor: there is no flavor 'huge'\n"
        assert instance("migrate", "web", "--host", "nowhere")[2] == "roost: $.host: there is no host 'nowhere'\n"
        code, _, said = instance("resize", "web", "vcpus=99,memory_mb=16", "--wait")
        assert (code, said.startswith("roost: No valid host")) == (1, True)
        assert shown(instance)[0] == "ACTIVE"
        assert "cannot revert in status ACTIVE" in instance("revert", "web")[2]
