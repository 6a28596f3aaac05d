"""Server group policies hold while members move, and when they go back."""

import random
from contextlib import suppress

import pytest

from roost.errors import Conflict
from roost.model.host import HostFacts
from roost.model.names import uuid_text
from tests.support.conductors.conductors import failure, server
from tests.support.conductors.group_rules import check_group_policy
from tests.support.conductors.move_servers import run_agents_until_idle
from tests.support.conductors.resize_servers import instance_summary, request_resize, resize_agents
from tests.support.fleets.worlds import group, host, merge_fleets


def fleet(count, policy, limit=1):
    racks = [f"r{number // 2}" for number in range(count)]
    hosts = [host(f"h{number}", VCPU=8, MEMORY_MB=99, facts=HostFacts(rack=racks[number])) for number in range(count)]
    return merge_fleets(*hosts, group("g", policy, limit=limit))


def on_host(number):
    return {"force_hosts": (f"h{number}",), "in_group": "g"}


def move_member(app):
    """Move a member from h0 to h1, and leave the move unconfirmed; return the agents of three hosts."""
    hands = resize_agents(app, "h0", "h1", "h2")
    app.build("one", **on_host(0))
    run_agents_until_idle(app, hands)
    request_resize(app, "migrate", "one", host="h1", is_verified=True)
    run_agents_until_idle(app, hands)
    return hands


def test_old_host_of_an_unconfirmed_move_accepts_no_other_member():
    with server(None, fleet(3, "anti-affinity")) as app:
        hands = move_member(app)
        assert instance_summary(app, "one")[:2] == ("VERIFY_RESIZE", "h1")
        app.build("two", key="two", in_group="g")
        app.build("three", key="three", in_group="g")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "two")[:2] == ("ACTIVE", "h2")
        assert instance_summary(app, "three")[0] == "ERROR"
        request_resize(app, "revert", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("ACTIVE", "h0", "")
        app.build("four", key="four", in_group="g")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "four")[:2] == ("ACTIVE", "h1")
        check_group_policy(app, "anti-affinity", 1)


def test_old_host_of_a_confirmed_move_accepts_another_member():
    with server(None, fleet(2, "anti-affinity")) as app:
        hands = resize_agents(app, "h0", "h1")
        app.build("one", **on_host(0))
        run_agents_until_idle(app, hands)
        request_resize(app, "migrate", "one")
        run_agents_until_idle(app, hands)
        app.build("two", key="two", in_group="g")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "two")[:2] == ("ACTIVE", "h0")


def test_affinity_group_accepts_no_member_while_its_only_one_moves():
    with server(None, fleet(3, "affinity")) as app:
        hands = move_member(app)
        app.build("two", key="two", in_group="g")
        run_agents_until_idle(app, hands)
        status, _, fault = instance_summary(app, "two")
        assert status == "ERROR"
        assert "accept no member of the server group while its only member moves" in fault
        app.build("forced", key="forced", **on_host(1))
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "forced")[0] == "ERROR"
        request_resize(app, "confirm", "one")
        run_agents_until_idle(app, hands)
        app.build("three", key="three", in_group="g")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "three")[:2] == ("ACTIVE", "h1")
        request_resize(app, "migrate", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one")[:2] == ("ACTIVE", "h1")
        check_group_policy(app, "affinity", 1)


def test_affinity_group_accepts_members_after_a_failed_move():
    with server(None, fleet(2, "affinity")) as app:
        hands = resize_agents(app, "h0", "h1")
        app.build("one", **on_host(0))
        run_agents_until_idle(app, hands)
        request_resize(app, "migrate", "one")
        run_agents_until_idle(app, hands, {("h1", "finish"): [failure()]})
        assert instance_summary(app, "one")[:2] == ("ACTIVE", "h0")
        app.build("two", key="two", in_group="g")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "two")[:2] == ("ACTIVE", "h0")


def test_allocations_of_a_migration_are_not_an_instance():
    with server(None, fleet(3, "anti-affinity")) as app:
        move_member(app)
        state = app.run(lambda current: current.state)
        assert state.hosts.columns["num_instances"].view.tolist()[:3] == [0, 1, 0]
        (server_group,) = state.groups.values()
        assert sum(server_group.members.values()) == 1
        holders = [holder for holder in state.holders.values() if holder.kept is not None]
        assert [uuid_text(holder.uuid) for holder in holders] == [uuid_text(app.status("one").migration_uuid)]
        assert holders[0].instance is None


POLICIES = [("anti-affinity", 1), ("anti-affinity", 2), ("affinity", 1), ("fault-domain", 1)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("policy", "limit"), POLICIES)
def test_group_policy_holds_under_random_operations_and_failures(policy, limit, seed):
    chance, names = random.Random(f"{policy} {limit} {seed}"), []
    with server(None, fleet(4, policy, limit)) as app:
        hands = resize_agents(app, *(f"h{number}" for number in range(4)))
        for at in range(25):
            app.clock.time_s += 1
            with suppress(Conflict):
                kind = chance.choice(["build", "build", "migrate", "resize", "confirm", "revert", "revert", "delete"])
                unconfirmed = [each for each in names if app.status(each).status == "VERIFY_RESIZE"]
                name = chance.choice(unconfirmed if unconfirmed and kind in {"confirm", "revert"} else names or [""])
                if kind == "build" or not names:
                    names.append(f"i{at}")
                    hints = {"fault_domain": chance.choice(["a", "b"])} if policy == "fault-domain" else {}
                    app.build(names[-1], key=names[-1], in_group="g", hints=hints)
                elif kind == "delete":
                    app.delete(name, key=f"end {at}")
                else:
                    is_verified = chance.random() < 0.7
                    request_resize(app, kind, name, vcpus=2 if kind == "resize" else 0, is_verified=is_verified)
                    if kind == "revert":
                        run_agents_until_idle(app, hands)
                        assert instance_summary(app, name)[0] in {"ACTIVE", "SHUTOFF"}
            acts = ["prepare", "power_off", "send_disk", "finish", "spawn"]
            script = {(name, act): [failure()] for name in hands for act in acts if chance.random() < 0.15}
            for _ in range(chance.choice([1, 2, 40])):
                done = app.turn() + sum(hand.work(script) for hand in hands.values())
                check_group_policy(app, policy, limit)
                if not done:
                    break
        run_agents_until_idle(app, hands)
        check_group_policy(app, policy, limit)
        assert all(count <= 1 for hand in hands.values() for count in hand.most_running.values())
