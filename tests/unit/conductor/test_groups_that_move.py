"""Server group policies hold while members move, and when they go back."""

import random
from contextlib import suppress

import pytest

from roost.errors import Conflict
from roost.model.host import HostFacts
from roost.model.names import uuid_text
from tests.support.conductors.conductors import failed, server
from tests.support.conductors.group_rules import rule_holds
from tests.support.conductors.move_servers import at_rest
from tests.support.conductors.resize_servers import ask, keepers, told
from tests.support.fleets.worlds import group, host, joined


def fleet(count, policy, limit=1):
    racks = [f"r{number // 2}" for number in range(count)]
    hosts = [host(f"h{number}", VCPU=8, MEMORY_MB=99, facts=HostFacts(rack=racks[number])) for number in range(count)]
    return joined(*hosts, group("g", policy, limit=limit))


def on_host(number):
    return {"force_hosts": (f"h{number}",), "in_group": "g"}


def move_member(app):
    """Move a member from h0 to h1, and leave the move unconfirmed; return the agents of three hosts."""
    hands = keepers(app, "h0", "h1", "h2")
    app.build("one", **on_host(0))
    at_rest(app, hands)
    ask(app, "migrate", "one", host="h1", is_verified=True)
    at_rest(app, hands)
    return hands


def test_old_host_of_an_unconfirmed_move_accepts_no_other_member():
    with server(None, fleet(3, "anti-affinity")) as app:
        hands = move_member(app)
        assert told(app, "one")[:2] == ("VERIFY_RESIZE", "h1")
        app.build("two", key="two", in_group="g")
        app.build("three", key="three", in_group="g")
        at_rest(app, hands)
        assert told(app, "two")[:2] == ("ACTIVE", "h2")
        assert told(app, "three")[0] == "ERROR"
        ask(app, "revert", "one")
        at_rest(app, hands)
        assert told(app, "one") == ("ACTIVE", "h0", "")
        app.build("four", key="four", in_group="g")
        at_rest(app, hands)
        assert told(app, "four")[:2] == ("ACTIVE", "h1")
        rule_holds(app, "anti-affinity", 1)


def test_old_host_of_a_confirmed_move_accepts_another_member():
    with server(None, fleet(2, "anti-affinity")) as app:
        hands = keepers(app, "h0", "h1")
        app.build("one", **on_host(0))
        at_rest(app, hands)
        ask(app, "migrate", "one")
        at_rest(app, hands)
        app.build("two", key="two", in_group="g")
        at_rest(app, hands)
        assert told(app, "two")[:2] == ("ACTIVE", "h0")


def test_affinity_group_accepts_no_member_while_its_only_one_moves():
    with server(None, fleet(3, "affinity")) as app:
        hands = move_member(app)
        app.build("two", key="two", in_group="g")
        at_rest(app, hands)
        status, _, fault = told(app, "two")
        assert status == "ERROR"
        assert "accept no member of the server group while its only one moves" in fault
        app.build("forced", key="forced", **on_host(1))
        at_rest(app, hands)
        assert told(app, "forced")[0] == "ERROR"
        ask(app, "confirm", "one")
        at_rest(app, hands)
        app.build("three", key="three", in_group="g")
        at_rest(app, hands)
        assert told(app, "three")[:2] == ("ACTIVE", "h1")
        ask(app, "migrate", "one")
        at_rest(app, hands)
        assert told(app, "one")[:2] == ("ACTIVE", "h1")
        rule_holds(app, "affinity", 1)


def test_affinity_group_accepts_members_after_a_failed_move():
    with server(None, fleet(2, "affinity")) as app:
        hands = keepers(app, "h0", "h1")
        app.build("one", **on_host(0))
        at_rest(app, hands)
        ask(app, "migrate", "one")
        at_rest(app, hands, {("h1", "finish"): [failed()]})
        assert told(app, "one")[:2] == ("ACTIVE", "h0")
        app.build("two", key="two", in_group="g")
        at_rest(app, hands)
        assert told(app, "two")[:2] == ("ACTIVE", "h0")


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
        hands = keepers(app, *(f"h{number}" for number in range(4)))
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
                    ask(app, kind, name, vcpus=2 if kind == "resize" else 0, is_verified=is_verified)
                    if kind == "revert":
                        at_rest(app, hands)
                        assert told(app, name)[0] in {"ACTIVE", "SHUTOFF"}
            acts = ["prepare", "power_off", "send_disk", "finish", "spawn"]
            script = {(name, act): [failed()] for name in hands for act in acts if chance.random() < 0.15}
            for _ in range(chance.choice([1, 2, 40])):
                done = app.turn() + sum(hand.work(script) for hand in hands.values())
                rule_holds(app, policy, limit)
                if not done:
                    break
        at_rest(app, hands)
        rule_holds(app, policy, limit)
        assert all(count <= 1 for hand in hands.values() for count in hand.most_running.values())
