"""Resize and migration with ``roost instance``, on a real server with simulated agents."""

import json

from tests.support.agents.http_agents import play_agents


def state_of(instance):
    document = json.loads(instance("show", "web", "--json")[1])
    return document["status"], document["host"], sum(amounts["VCPU"] for amounts in document["allocations"].values())


def test_instance_is_resized_reverted_confirmed_and_migrated(server, instance):
    with play_agents(server):
        assert instance("create", "web", "--flavor", "vcpus=1,memory_mb=16", "--wait")[0] == 0
        _, first, _ = state_of(instance)
        assert instance("resize", "web", "vcpus=3,memory_mb=16", "--wait")[0] == 0
        assert state_of(instance)[::2] == ("VERIFY_RESIZE", 3)
        assert instance("revert", "web", "--wait")[0] == 0
        assert state_of(instance) == ("ACTIVE", first, 1)
        assert instance("resize", "web", "vcpus=2,memory_mb=16", "--wait")[0] == 0
        assert instance("confirm", "web", "--wait")[0] == 0
        status, second, amount = state_of(instance)
        assert (status, amount) == ("ACTIVE", 2)
        assert instance("migrate", "web", "--wait")[0] == 0
        assert state_of(instance)[0] == "ACTIVE"
        assert state_of(instance)[1] != second
        assert instance("migrate", "web", "--host", second, "--verify", "--wait")[0] == 0
        assert state_of(instance)[:2] == ("VERIFY_RESIZE", second)


def test_impossible_change_is_refused_in_one_sentence(server, instance):
    with play_agents(server):
        assert instance("create", "web", "--flavor", "vcpus=1,memory_mb=16", "--wait")[0] == 0
        assert instance("resize", "web", "vcpus=1,memory_mb=16")[2] == (
            "roost: FLAVOR: the instance has that size already\n"
        )
        assert instance("resize", "web", "huge")[::2] == (4, "roost: FLAVOR: there is no flavor 'huge'\n")
        assert instance("migrate", "web", "--host", "nowhere")[::2] == (
            4,
            "roost: --host: there is no host 'nowhere'\n",
        )
        code, _, error = instance("resize", "web", "vcpus=99,memory_mb=16", "--wait")
        assert (code, error.startswith("roost: 0 of 3 hosts")) == (1, True)
        assert state_of(instance)[0] == "ACTIVE"
        assert "cannot revert in status ACTIVE" in instance("revert", "web")[2]
