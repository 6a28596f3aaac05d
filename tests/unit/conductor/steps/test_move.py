"""Cold migrations and resizes: every step, and the failures of every step."""

import pytest

from roost.model.work.orders import Answer
from tests.support.conductors.conductors import action, failure, server
from tests.support.conductors.move_servers import advance_clock, migrations, nodes_by_consumer, run_agents_until_idle
from tests.support.conductors.resize_servers import instance_summary, request_resize, resize_agents
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, merge_fleets

ONE = uuid_named("one")
BROKEN = Answer(outcome="aborted", problem="it is broken")


def fleet(*amounts):
    return merge_fleets(
        *(host(f"h{number}", VCPU=vcpus, MEMORY_MB=100 - number) for number, vcpus in enumerate(amounts))
    )


def build_on_h0(app, *names):
    """Build an instance on h0; return the agents by host."""
    hands = resize_agents(app, *names)
    app.build("one", force_hosts=("h0",))
    run_agents_until_idle(app, hands)
    assert instance_summary(app, "one") == ("ACTIVE", "h0", "")
    return hands


def states(hands):
    return {name: hand.guests[ONE] for name, hand in hands.items() if ONE in hand.guests}


def test_resize_to_another_host_is_confirmed():
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=3)
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h1", "")
        assert states(hands) == {"h0": "stopped", "h1": "running"}
        assert app.used()["VCPU"] == 4
        assert migrations(app, "one") == [("resize", "finished", "h0", "h1")]
        request_resize(app, "confirm", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("ACTIVE", "h1", "")
        assert states(hands) == {"h1": "running"}
        assert nodes_by_consumer(app) == {ONE: ["h1"]}
        assert app.used()["VCPU"] == 3
        assert migrations(app, "one") == [("resize", "confirmed", "h0", "h1")]
        assert hands["h0"].done == ["spawn", "power_off", "send_disk", "destroy"]
        assert hands["h1"].done == ["prepare", "finish", "inspect"]


@pytest.mark.parametrize("is_on", [True, False])
def test_revert_restores_the_old_size_and_power_state(is_on):
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        if not is_on:
            app.power("one", "stop")
            run_agents_until_idle(app, hands)
        before = app.status("one")
        request_resize(app, "resize", "one", vcpus=3)
        run_agents_until_idle(app, hands)
        assert app.status("one").flavor_id != before.flavor_id
        request_resize(app, "revert", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("ACTIVE" if is_on else "SHUTOFF", "h0", "")
        assert states(hands) == {"h0": "running" if is_on else "stopped"}
        assert app.status("one").flavor_id == before.flavor_id
        assert app.status("one").migration_uuid is None
        assert app.used()["VCPU"] == 1
        assert migrations(app, "one") == [("resize", "reverted", "h0", "h1")]


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_resize_on_the_same_host_is_confirmed_or_reverted(end):
    with server(None, fleet(8)) as app:
        hands = build_on_h0(app, "h0")
        request_resize(app, "resize", "one", vcpus=3)
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h0", "")
        assert app.used()["VCPU"] == 4
        assert hands["h0"].copies[ONE].vcpus == 3
        request_resize(app, end, "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("ACTIVE", "h0", "")
        assert app.used()["VCPU"] == (3 if end == "confirm" else 1)
        assert hands["h0"].copies[ONE].vcpus == (3 if end == "confirm" else 1)
        assert hands["h0"].replaced == {}
        assert "destroy" not in hands["h0"].done
        assert request_resize(app, "migrate", "one") is not None
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one")[:2] == ("ACTIVE", "h0")
        assert instance_summary(app, "one")[2].startswith("No valid host")


def test_returning_host_discards_an_unfinished_resize_on_the_same_host():
    with server(None, fleet(8)) as app:
        hands = build_on_h0(app, "h0")
        request_resize(app, "resize", "one", vcpus=3)
        run_agents_until_idle(app, hands, {("h0", "send_disk"): [None]})
        assert ONE in hands["h0"].coming
        hands["h0"].leave()
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one")[:2] == ("SHUTOFF", "h0")
        assert app.used()["VCPU"] == 1
        hands["h0"].known = []
        hands["h0"].register()
        run_agents_until_idle(app, hands)
        assert hands["h0"].coming == {}
        assert states(hands) == {"h0": "stopped"}


def test_migration_confirms_itself_unless_it_must_be_verified():
    with server(None, fleet(4, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "migrate", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("ACTIVE", "h1", "")
        assert states(hands) == {"h1": "running"}
        assert app.used()["VCPU"] == 1
        app.clock.time_s += 1
        request_resize(app, "migrate", "one", is_verified=True)
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h0", "")
        assert app.used()["VCPU"] == 2


def test_stopped_instance_stays_stopped():
    with server(None, fleet(4, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        app.power("one", "stop")
        run_agents_until_idle(app, hands)
        request_resize(app, "migrate", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("SHUTOFF", "h1", "")
        assert states(hands) == {"h1": "stopped"}


def test_guest_that_started_late_is_stopped_before_its_disk_is_sent():
    with server(None, fleet(4, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        app.power("one", "stop")
        run_agents_until_idle(app, hands)
        app.power("one", "start")
        run_agents_until_idle(app, hands, {("h0", "power_on"): [None]})
        advance_clock(app, hands, 601)
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one")[:2] == ("SHUTOFF", "h0")
        hands["h0"].copies[ONE].state = "running"
        request_resize(app, "migrate", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("SHUTOFF", "h1", "")
        assert states(hands) == {"h1": "stopped"}
        assert hands["h0"].done[-3:] == ["power_off", "send_disk", "destroy"]


def test_next_target_is_used_if_one_cannot_prepare():
    with server(None, fleet(4, 4, 4)) as app:
        hands = build_on_h0(app, "h0", "h1", "h2")
        request_resize(app, "migrate", "one")
        run_agents_until_idle(app, hands, {("h1", "prepare"): [failure("no disk")]})
        assert instance_summary(app, "one") == ("ACTIVE", "h2", "")
        assert app.used()["VCPU"] == 1
        assert states(hands) == {"h2": "running"}


def test_instance_keeps_running_on_its_host_if_no_target_can_prepare():
    with server(None, fleet(4, 4, 4)) as app:
        hands = build_on_h0(app, "h0", "h1", "h2")
        request_resize(app, "resize", "one", vcpus=4)
        run_agents_until_idle(app, hands, {(f"h{number}", "prepare"): [failure("no disk")] for number in range(3)})
        status, place, fault = instance_summary(app, "one")
        assert (status, place) == ("ACTIVE", "h0")
        assert "no disk" in fault
        assert states(hands) == {"h0": "running"}
        assert "power_off" not in hands["h0"].done
        assert nodes_by_consumer(app) == {ONE: ["h0"]}
        assert {each[1] for each in migrations(app, "one")} == {"failed"}


@pytest.mark.parametrize(("at", "act"), [("h0", "power_off"), ("h0", "send_disk"), ("h1", "finish"), ("h1", "prepare")])
@pytest.mark.parametrize("answer", [failure("it is broken"), BROKEN, Answer(outcome="stale")])
def test_failed_step_leaves_the_instance_as_it_was(at, act, answer):
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=2)
        run_agents_until_idle(app, hands, {(at, act): [answer]})
        status, place, fault = instance_summary(app, "one")
        assert (status, place, bool(fault)) == ("ACTIVE", "h0", True)
        assert states(hands) == {"h0": "running"}
        assert app.used()["VCPU"] == 1
        assert app.status("one").migration_uuid is None
        assert hands["h0"].most_running == {ONE: 1}


@pytest.mark.parametrize(("at", "act"), [("h0", "power_off"), ("h0", "send_disk"), ("h1", "finish"), ("h1", "prepare")])
@pytest.mark.parametrize("is_done", [True, False])
def test_late_host_undoes_its_step(at, act, is_done):
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        hand = hands[at]
        result = hand.result

        def give_no_answer(order):
            if action(order) != act:
                return result(order)
            if is_done:
                result(order)
            return None

        hand.result = give_no_answer
        request_resize(app, "resize", "one", vcpus=2)
        run_agents_until_idle(app, hands)
        hand.result = result
        advance_clock(app, hands, 601)
        run_agents_until_idle(app, hands)
        status, place, fault = instance_summary(app, "one")
        assert (status, place) == ("ACTIVE", "h0")
        assert fault
        assert states(hands) == {"h0": "running"}
        assert app.used()["VCPU"] == 1
        assert hands["h0"].most_running == {ONE: 1}


def test_resize_waits_for_a_gone_target_that_may_run_the_guest():
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=2)
        result = hands["h1"].result

        def give_no_answer_to_finish(order):
            answer = result(order)
            return None if action(order) == "finish" else answer

        hands["h1"].result = give_no_answer_to_finish
        run_agents_until_idle(app, hands)
        assert states(hands) == {"h0": "stopped", "h1": "running"}
        hands["h1"].leave()
        run_agents_until_idle(app, hands)
        advance_clock(app, hands, 5000)
        run_agents_until_idle(app, hands)
        assert app.status("one").task == "resizing"
        assert "it may run on h1, so the operation waits for that host" in app.status("one").fault
        assert states(hands) == {"h0": "stopped", "h1": "running"}
        assert app.used()["VCPU"] == 3
        hands["h1"].result, hands["h1"].known = result, []
        hands["h1"].register()
        advance_clock(app, hands, 11)
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one")[:2] == ("ACTIVE", "h0")
        assert states(hands) == {"h0": "running"}
        assert app.used()["VCPU"] == 1
        assert hands["h0"].most_running == {ONE: 1}


@pytest.mark.parametrize("act", ["power_off", "send_disk"])
def test_source_that_leaves_during_its_step_keeps_the_instance(act):
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=2)
        run_agents_until_idle(app, hands, {("h0", act): [None]})
        hands["h0"].leave()
        run_agents_until_idle(app, hands)
        status, place, fault = instance_summary(app, "one")
        assert (status, place) == ("SHUTOFF", "h0")
        assert "does not answer" in fault
        assert ONE not in hands["h1"].guests
        assert nodes_by_consumer(app) == {ONE: ["h0"]}


def test_source_that_leaves_after_its_last_step_does_not_stop_the_resize():
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=2)
        run_agents_until_idle(app, hands, {("h1", "finish"): [None]})
        hands["h0"].leave()
        hands["h1"].known = []
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h1", "")
        request_resize(app, "revert", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == (
            "VERIFY_RESIZE",
            "h1",
            "it cannot go back: the agent of h0 does not answer",
        )
        app.clock.time_s += 1
        request_resize(app, "confirm", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("ACTIVE", "h1", "")
        assert migrations(app, "one") == [("resize", "left", "h0", "h1")]
        assert app.used()["VCPU"] == 3
        hands["h0"].register()
        run_agents_until_idle(app, hands)
        assert states(hands) == {"h1": "running"}
        assert app.used()["VCPU"] == 2
        assert migrations(app, "one") == [("resize", "confirmed", "h0", "h1")]


def test_failed_destroy_on_the_source_is_repeated():
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=2)
        run_agents_until_idle(app, hands)
        request_resize(app, "confirm", "one")
        run_agents_until_idle(app, hands, {("h0", "destroy"): [failure("busy")]})
        assert (app.status("one").task, app.used()["VCPU"]) == ("confirming", 3)
        advance_clock(app, hands, 11)
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("ACTIVE", "h1", "")
        assert app.used()["VCPU"] == 2


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_confirm_and_revert_fail_while_the_host_is_gone(end):
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=2)
        run_agents_until_idle(app, hands)
        hands["h1"].leave()
        request_resize(app, end, "one")
        run_agents_until_idle(app, hands)
        status, host, fault = instance_summary(app, "one")
        assert (status, host) == ("VERIFY_RESIZE", "h1")
        assert fault.startswith("the agent of h1 does not answer")
        assert app.used()["VCPU"] == 3


def test_move_with_a_missing_guest_is_not_confirmed():
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=2)
        run_agents_until_idle(app, hands)
        hands["h1"].copies.clear()
        request_resize(app, "confirm", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h1", "h1 has no guest of this instance")
        app.clock.time_s += 1
        request_resize(app, "revert", "one")
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("ACTIVE", "h0", "")
        assert states(hands) == {"h0": "running"}


def test_revert_waits_for_a_host_that_leaves_during_the_discard():
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=2)
        run_agents_until_idle(app, hands)
        request_resize(app, "revert", "one")
        run_agents_until_idle(app, hands, {("h1", "discard"): [None]})
        hands["h1"].leave()
        run_agents_until_idle(app, hands)
        assert "waits for that host" in app.status("one").fault
        assert states(hands) == {"h0": "stopped", "h1": "running"}
        hands["h1"].known = []
        hands["h1"].register()
        advance_clock(app, hands, 11)
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("ACTIVE", "h0", "")
        assert states(hands) == {"h0": "running"}
        assert hands["h0"].most_running == {ONE: 1}


STEPS = [("h1", "prepare"), ("h0", "power_off"), ("h0", "send_disk"), ("h1", "finish"), ("h1", "discard")]


@pytest.mark.parametrize(("at", "act"), STEPS)
def test_deletion_ends_the_resize_at_any_step(at, act):
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=2)
        script = {(at, act): [None]} | ({("h1", "finish"): [failure()]} if act == "discard" else {})
        run_agents_until_idle(app, hands, script)
        app.delete("one")
        hands[at].known = []
        run_agents_until_idle(app, hands)
        assert app.status("one").status == "DELETED"
        assert states(hands) == {}
        assert nodes_by_consumer(app) == {}
        assert app.open_operations() == []


@pytest.mark.parametrize("end", ["confirm", "revert"])
@pytest.mark.parametrize("act", ["inspect", "destroy", "discard", "power_on"])
def test_deletion_ends_a_confirm_or_revert_at_any_step(end, act):
    with server(None, fleet(1, 4)) as app:
        hands = build_on_h0(app, "h0", "h1")
        request_resize(app, "resize", "one", vcpus=2)
        run_agents_until_idle(app, hands)
        request_resize(app, end, "one")
        run_agents_until_idle(app, hands, {(name, act): [None] for name in hands})
        app.delete("one")
        for hand in hands.values():
            hand.known = []
        run_agents_until_idle(app, hands)
        assert app.status("one").status == "DELETED"
        assert states(hands) == {}
        assert nodes_by_consumer(app) == {}
