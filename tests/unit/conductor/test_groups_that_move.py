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


def move_member(here):
    """Move a member from h0 to h1, and leave the move unconfirmed; return the agents of three hosts."""
    hands = keepers(here, "h0", "h1", "h2")
    here.build("one", **on_host(0))
    at_rest(here, hands)
    ask(here, "migrate", "one", host="h1", is_verified=True)
    at_rest(here, hands)
    return hands


def test_old_host_of_an_unconfirmed_move_accepts_no_other_member():
    with server(None, fleet(3, "anti-affinity")) as here:
        hands = move_member(here)
        assert told(here, "one")[:2] == ("VERIFY_RESIZE", "h1")
        here.build("two", key="two", in_group="g")
        here.build("three", key="three", in_group="g")
        at_rest(here, hands)
        assert told(here, "two")[:2] == ("ACTIVE", "h2")
        assert told(here, "three")[0] == "ERROR"
        ask(here, "revert", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h0", "")
        here.build("four", key="four", in_group="g")
        at_rest(here, hands)
        assert told(here, "four")[:2] == ("ACTIVE", "h1")
        rule_holds(here, "anti-affinity", 1)


def test_old_host_of_a_confirmed_move_accepts_another_member():
    with server(None, fleet(2, "anti-affinity")) as here:
        hands = keepers(here, "h0", "h1")
        here.build("one", **on_host(0))
        at_rest(here, hands)
        ask(here, "migrate", "one")
        at_rest(here, hands)
        here.build("two", key="two", in_group="g")
        at_rest(here, hands)
        assert told(here, "two")[:2] == ("ACTIVE", "h0")


def test_affinity_group_accepts_no_member_while_its_only_one_moves():
    with server(None, fleet(3, "affinity")) as here:
        hands = move_member(here)
        here.build("two", key="two", in_group="g")
        at_rest(here, hands)
        status, _, fault = told(here, "two")
        assert status == "ERROR"
        assert "accept no member of the server group while its only one moves" in fault
        here.build("forced", key="forced", **on_host(1))
        at_rest(here, hands)
        assert told(here, "forced")[0] == "ERROR"
        ask(here, "confirm", "one")
        at_rest(here, hands)
        here.build("three", key="three", in_group="g")
        at_rest(here, hands)
        assert told(here, "three")[:2] == ("ACTIVE", "h1")
        ask(here, "migrate", "one")
        at_rest(here, hands)
        assert told(here, "one")[:2] == ("ACTIVE", "h1")
        rule_holds(here, "affinity", 1)


def test_affinity_group_accepts_members_after_a_failed_move():
    with server(None, fleet(2, "affinity")) as here:
        hands = keepers(here, "h0", "h1")
        here.build("one", **on_host(0))
        at_rest(here, hands)
        ask(here, "migrate", "one")
        at_rest(here, hands, {("h1", "finish"): [failed()]})
        assert told(here, "one")[:2] == ("ACTIVE", "h0")
        here.build("two", key="two", in_group="g")
        at_rest(here, hands)
        assert told(here, "two")[:2] == ("ACTIVE", "h0")


def test_allocations_of_a_migration_are_not_an_instance():
    with server(None, fleet(3, "anti-affinity")) as here:
        move_member(here)
        state = here.run(lambda current: current.state)
        assert state.hosts.columns["num_instances"].view.tolist()[:3] == [0, 1, 0]
        (server_group,) = state.groups.values()
        assert sum(server_group.members.values()) == 1
        holders = [holder for holder in state.holders.values() if holder.kept is not None]
        assert [uuid_text(holder.uuid) for holder in holders] == [uuid_text(here.status("one").migration_uuid)]
        assert holders[0].instance is None


POLICIES = [("anti-affinity", 1), ("anti-affinity", 2), ("affinity", 1), ("fault-domain", 1)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("policy", "limit"), POLICIES)
def test_group_policy_holds_under_random_operations_and_failures(policy, limit, seed):
    chance, names = random.Random(f"{policy} {limit} {seed}"), []
    with server(None, fleet(4, policy, limit)) as here:
        hands = keepers(here, *(f"h{number}" for number in range(4)))
        for at in range(25):
            here.clock.time_s += 1
            with suppress(Conflict):
                kind = chance.choice(["build", "build", "migrate", "resize", "confirm", "revert", "revert", "delete"])
                unconfirmed = [each for each in names if here.status(each).status == "VERIFY_RESIZE"]
                name = chance.choice(unconfirmed if unconfirmed and kind in {"confirm", "revert"} else names or [""])
                if kind == "build" or not names:
                    names.append(f"i{at}")
                    hints = {"fault_domain": chance.choice(["a", "b"])} if policy == "fault-domain" else {}
                    here.build(names[-1], key=names[-1], in_group="g", hints=hints)
                elif kind == "delete":
                    here.delete(name, key=f"end {at}")
                else:
                    is_verified = chance.random() < 0.7
                    ask(here, kind, name, vcpus=2 if kind == "resize" else 0, is_verified=is_verified)
                    if kind == "revert":
                        at_rest(here, hands)
                        assert told(here, name)[0] in {"ACTIVE", "SHUTOFF"}
            acts = ["prepare", "power_off", "send_disk", "finish", "spawn"]
            script = {(name, act): [failed()] for name in hands for act in acts if chance.random() < 0.15}
            for _ in range(chance.choice([1, 2, 40])):
                done = here.turn() + sum(hand.work(script) for hand in hands.values())
                rule_holds(here, policy, limit)
                if not done:
                    break
        at_rest(here, hands)
        rule_holds(here, policy, limit)
        assert all(count <= 1 for hand in hands.values() for count in hand.most_running.values())
