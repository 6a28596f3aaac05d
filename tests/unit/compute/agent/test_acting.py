"""What an order is on a host: room for the guest, the act of its driver, and the answer."""

from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.tasks import Clean, Undo, Work
from roost.compute.driver_values import check_guests
from roost.compute.drivers.fake.driver import Fake
from roost.compute.drivers.fake.guests import FakeGuest, MemoryShelf
from roost.compute.drivers.fake.script import Fault, Script
from roost.errors import BuildFailed, JournalLost
from roost.model.devices.topology import InstanceCell, InstanceTopology
from roost.model.work.agent_terms import Capabilities
from roost.model.work.guest import GuestReport, TransferTarget
from roost.model.work.orders import (
    PROBLEM_MAX,
    AbortMigration,
    Destroy,
    Discard,
    Finish,
    Inspect,
    LiveMigrate,
    Power,
    Prepare,
    Reboot,
    Rebuild,
    Save,
    SendDisk,
    Settle,
    Spawn,
)
from tests.support.agents.driver_doubles import fake, spec_of
from tests.support.agents.order_execution import CARD, GUEST, Host, failing, pinned, pinned_on
from tests.support.agents.scripted_agents import HOST, RUN, PlainTracker, order, spec
from tests.support.fleets.devices import ask
from tests.support.fleets.worlds import uuid_named


class Odd:
    """A driver that returns what it should not, or raises."""

    def __init__(self, **answers):
        self._inner, self._answers = fake(host=HOST), answers

    def __getattr__(self, name):
        if name not in self._answers:
            return getattr(self._inner, name)
        told = self._answers[name]

        def call(*_words, **_more):
            if isinstance(told, BaseException):
                raise told
            return told

        return call


def test_a_guest_is_admitted_built_and_told_of():
    host = Host()
    answer = host.do(Spawn(spec(**CARD)))
    assert (answer.outcome, answer.found.state, answer.run) == ("ok", "running", RUN)
    assert host.free == 1
    assert [each.operation for each in host.journal.holdings(GUEST)] == [order(Destroy()).operation]


def test_a_guest_gets_the_cells_that_it_was_admitted_to():
    topology = InstanceTopology(cells=(InstanceCell(id=0, pcpus=frozenset({0, 1}), memory_mb=64, policy="dedicated"),))
    host, seen = Host(), []
    host.driver.spawn = lambda guest, _: seen.append(guest)
    host.do(Spawn(spec(topology=topology)))
    assert [each.host_cell for each in seen[0].cells] == [0]


def test_a_guest_that_does_not_fit_is_refused_and_another_host_may_do():
    host = Host()
    host.do(Spawn(spec("other", pci=(ask(count=2),))), of="other")
    answer = host.do(Spawn(spec(**CARD)))
    assert answer.outcome == "failed"
    assert answer.problem.startswith("the host lacks free PCI devices: 1 ")
    assert host.driver.inspect(GUEST) is None


@pytest.mark.parametrize(
    ("kind", "outcome", "problem"),
    [
        ("failed", "failed", "spawn on host-a was to go wrong (failed)"),
        ("aborted", "aborted", "spawn on host-a was to go wrong (aborted)"),
        ("unready", "failed", "spawn on host-a was to go wrong (unready)"),
        ("crash", "aborted", "FakeCrash: spawn on host-a was to go wrong (crash)"),
    ],
)
def test_a_build_that_goes_wrong_leaves_nothing(kind, outcome, problem, capsys):
    host = failing("spawn", kind)
    answer = host.do(Spawn(spec(**CARD)))
    assert (answer.outcome, answer.problem) == (outcome, problem)
    assert (host.driver.guests(), host.free, host.journal.holdings(GUEST)) == ([], 2, [])
    assert ("Traceback" in capsys.readouterr().err) == (kind == "crash")


def test_an_error_of_the_driver_is_an_answer_whatever_it_is(capsys):
    host = Host()
    answer = host.do(Power(is_on=True))
    assert (answer.outcome, answer.problem) == ("aborted", "NotFound: host host-a has no complete guest " + GUEST)
    assert Host(Odd(spawn=SystemExit("bye"))).do(Spawn(spec())).problem == "SystemExit: bye"
    assert len(Host(Odd(spawn=ValueError("x" * 9_999))).do(Spawn(spec())).problem) == PROBLEM_MAX
    assert Host(Odd(spawn=BuildFailed("a\0b\udcff"))).do(Spawn(spec())).problem == "a?b?"
    capsys.readouterr()


@pytest.mark.parametrize(
    ("act", "name", "problem"),
    [
        (Save(), "save", f"guests on {HOST} cannot be saved"),
        (
            LiveMigrate(TransferTarget(uuid=GUEST, node=HOST, address="x")),
            "live_migrate",
            f"guests on {HOST} cannot move while they run",
        ),
    ],
)
def test_a_driver_is_not_asked_for_what_it_says_it_cannot(monkeypatch, act, name, problem):
    asked = Mock(return_value="image")
    monkeypatch.setattr(Fake, name, asked)
    host = Host()
    assert host.do(Spawn(spec())).outcome == "ok"
    monkeypatch.setattr(Fake, "capabilities", Capabilities())
    answer = host.do(act)
    assert (answer.outcome, answer.problem, asked.called) == ("aborted", problem, False)
    assert host.driver.inspect(GUEST).state == "running"
    monkeypatch.setattr(Fake, "capabilities", Capabilities(can_live_migrate=True, can_save=True))
    assert (host.do(act).outcome, asked.called) == ("ok", True)


@pytest.mark.parametrize(
    ("told", "act", "problem"),
    [
        ({"prepare": 1}, Prepare(spec()), "TypeError: prepare of the driver returned int, no TransferTarget"),
        ({"save": ""}, Save(), "TypeError: save of the driver returned no id of an image"),
        ({"inspect": "here"}, Inspect(), "TypeError: inspect of the driver returned str, no GuestReport"),
        (
            {"prepare": TransferTarget(uuid=uuid_named("other"), node=HOST, address="a")},
            Prepare(spec()),
            f"TypeError: prepare of the driver returned room for {uuid_named('other')} on {HOST}",
        ),
        (
            {"prepare": TransferTarget(uuid=GUEST, node=HOST, address=7)},
            Prepare(spec()),
            "TypeError: prepare of the driver returned no TransferTarget: Expected `str`, got `int` - at `$.address`",
        ),
        (
            {"inspect": GuestReport(uuid=GUEST, node=HOST, operation="", state="merry")},
            Inspect(),
            "TypeError: inspect of the driver returned no GuestReport: Invalid enum value 'merry' - at `$.state`",
        ),
        ({"save": "\0"}, Save(), "TypeError: save of the driver returned no id of an image"),
    ],
)
def test_what_a_driver_must_not_return_aborts_the_order(told, act, problem, capsys):
    answer = Host(Odd(**told)).do(act)
    assert (answer.outcome, answer.problem) == ("aborted", problem)
    capsys.readouterr()


def test_a_guest_that_cannot_be_looked_at_is_built_all_the_same():
    answer = Host(Odd(inspect=ValueError("no"))).do(Spawn(spec()))
    assert (answer.outcome, answer.found) == ("ok", None)


def test_an_order_whose_guest_is_another_one_is_aborted(capsys):
    assert "and its guest is" in Host().do(Spawn(spec("other"))).problem
    capsys.readouterr()


def test_a_guest_gives_back_all_when_it_is_destroyed():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    assert host.do(Power(is_on=False), 2).found.state == "stopped"
    assert host.do(Save(), 3).saved
    assert host.do(Rebuild(spec(image="new", **CARD)), turn=2).found.operation == order(Destroy(), turn=2).operation
    assert host.free == 1
    answer = host.do(Destroy(), turn=3)
    assert (answer.outcome, answer.found, host.free, host.journal.holdings(GUEST)) == ("ok", None, 2, [])


def test_a_guest_that_is_gone_gives_back_all_though_its_end_failed():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    host.driver.destroy(GUEST, "earlier")  # In a life that ended before anybody heard of it.

    def refuse(*_told):
        raise BuildFailed("there is no such guest")

    host.driver.destroy = refuse
    answer = host.do(Destroy(), turn=2)
    assert (answer.outcome, host.free, host.journal.holdings(GUEST)) == ("failed", 2, [])


def test_a_guest_that_reboots_is_stopped_and_runs_again():
    host = Host()
    host.do(Spawn(spec()))
    assert host.do(Reboot(), turn=2).found.state == "running"
    assert host.driver.console(GUEST).splitlines()[-2:] == [f"stopped on {HOST}", f"running on {HOST}"]


def test_what_was_done_in_an_earlier_life_is_not_done_again():
    host = Host()
    built = order(Spawn(spec(**CARD)))
    host.acting.carry_out(Work(built))
    host.driver.spawn = None
    answer = host.acting.carry_out(Work(built, is_again=True))
    assert (answer.outcome, answer.found.operation) == ("ok", built.operation)


def test_what_was_half_done_in_an_earlier_life_is_done():
    host = Host()
    host.driver._put(_half(order(Spawn(spec()))))
    answer = host.do(Spawn(spec(**CARD)), is_again=True)
    assert (answer.found.state, host.free) == ("running", 1)


def _half(built):
    return FakeGuest(spec=built.act.guest, operation=built.operation, state="building")


# --- moves ---


def test_a_move_to_another_host_holds_there_and_gives_back_here_when_it_is_destroyed():
    shelf = MemoryShelf()
    source, target = Host(fake(host=HOST, shelf=shelf)), Host(fake(host="host-b", shelf=shelf), name="host-b")
    source.do(Spawn(spec(**CARD)))
    coming = _on("host-b")
    prepared = target.do(Prepare(coming), turn=2, host="host-b").prepared
    source.do(Power(is_on=False), 2, turn=2)
    source.do(SendDisk(prepared), 3, turn=2)
    assert target.do(Finish(coming), 4, turn=2).found.state == "running"
    assert target.do(Finish(coming), 4, turn=2, is_again=True).outcome == "ok"
    assert source.do(Destroy(), 5, turn=2).outcome == "ok"
    assert source.free == 2
    assert list(target.journal.instances("host-b")) == [GUEST]


def test_a_guest_that_left_while_it_ran_gives_back():
    shelf = MemoryShelf()
    source, target = Host(fake(host=HOST, shelf=shelf)), Host(fake(host="host-b", shelf=shelf), name="host-b")
    source.do(Spawn(spec(**CARD)))
    prepared = target.do(Prepare(_on("host-b")), turn=2).prepared
    assert source.do(AbortMigration(), turn=2).outcome == "ok"
    answer = source.do(LiveMigrate(prepared), 2, turn=2)
    assert (answer.outcome, answer.found, source.free) == ("ok", None, 2)


def test_a_resize_in_place_holds_both_until_it_is_undone():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    before = host.journal.holdings(GUEST)
    host.do(Prepare(spec(pci=(ask(count=1),))), turn=2)
    assert (host.free, len(host.journal.holdings(GUEST))) == (0, 2)
    assert len(host.journal.migrations(HOST)) == 1
    assert host.do(Discard(), 2, turn=2).outcome == "ok"
    assert (host.free, host.journal.holdings(GUEST)) == (1, before)


@pytest.mark.parametrize("is_here", [True, False])
def test_what_was_prepared_again_in_another_life_is_held_once(is_here):
    host = Host()
    if is_here:
        host.do(Spawn(spec(**CARD)))
    before = host.free
    for _ in range(2):
        assert host.do(Prepare(spec(**CARD)), turn=2, is_again=True).outcome == "ok"
        assert host.free == before - 1
    assert host.do(Discard(), 2, turn=2).outcome == "ok"
    assert (host.free, len(host.journal.holdings(GUEST))) == (before, int(is_here))


@pytest.mark.parametrize(("end", "count"), [(Settle, 2), (Discard, 1)])
def test_a_resize_in_place_has_processors_of_its_own_for_both_sizes_until_it_ends(end, count):
    host, small, large = Host(), spec(**pinned(0)), spec(**pinned(0, 1))
    host.do(Spawn(small))
    prepared = host.do(Prepare(large), turn=2).prepared
    host.do(Power(is_on=False), 2, turn=2)
    assert host.do(SendDisk(prepared), 3, turn=2).outcome == "ok"
    assert host.do(Finish(large), 4, turn=2).found.state == "running"
    assert len(pinned_on(host)) == 3
    assert host.do(Spawn(spec("other", **pinned(0, 1))), of="other").outcome == "failed"
    for _ in range(2):
        assert host.do(end(order(Finish(large), turn=2).operation), turn=3).outcome == "ok"
        assert len(pinned_on(host)) == count
    assert len(host.journal.holdings(GUEST)) == 1
    assert host.do(Destroy(), turn=4).outcome == "ok"
    assert len(pinned_on(host)) == 0


def test_a_resize_in_place_that_was_undone_when_its_agent_died_and_is_done_again_leaves_what_the_guest_had():
    host = failing("finish", "crash")
    host.do(Spawn(spec(**CARD)))
    before, larger = host.journal.holdings(GUEST), spec(pci=(ask(count=1),))
    prepared = host.do(Prepare(larger), turn=2).prepared
    host.do(Power(is_on=False), 2, turn=2)
    host.do(SendDisk(prepared), 3, turn=2)
    assert host.do(Finish(larger), 4, turn=2).outcome == "aborted"
    assert host.do(Finish(larger), 4, turn=2, is_again=True).outcome == "failed"  # That was not written down.
    assert host.do(Discard(), 5, turn=2).outcome == "ok"
    assert (host.free, host.journal.holdings(GUEST)) == (1, before)


def test_a_guest_that_is_undone_after_a_move_found_it_gives_back_all():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    host.do(Prepare(spec(pci=(ask(count=1),))), turn=2)
    assert host.acting.carry_out(Undo(order(Spawn(spec(**CARD))))).outcome == "ok"
    assert host.driver.inspect(GUEST) is None
    assert host.do(Discard(), 2, turn=2).outcome == "ok"
    assert (host.free, host.journal.holdings(GUEST)) == (2, [])


def test_to_undo_a_move_that_never_fitted_leaves_the_guest_what_it_has():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    assert host.do(Prepare(spec(pci=(ask(count=2),))), turn=2).outcome == "failed"
    host.do(Discard(), 2, turn=2)
    assert (host.free, host.driver.inspect(GUEST).state) == (1, "running")


def _on(node):
    return spec_of("guest", node, **CARD)


def test_what_may_be_left_of_a_build_that_could_not_be_undone_is_told():
    faults = (Fault(action="spawn", kind="crash", times=1), Fault(action="destroy", kind="failed", times=1))
    host = Host(fake(Script(fault=faults), HOST))
    wanted = order(Spawn(spec()))
    answer = host.acting.carry_out(Work(wanted))
    assert (answer.outcome, answer.found) == (
        "aborted",
        GuestReport(uuid=GUEST, node=HOST, operation=wanted.operation, state="building"),
    )
    assert host.driver.inspect(GUEST) is not None
    assert host.acting.carry_out(Undo(wanted)).outcome == "ok"
    assert host.driver.inspect(GUEST) is None


# --- what is undone, and what the server said when the agent came ---


def test_a_build_that_nobody_wants_is_undone_unless_a_later_order_took_the_guest_over():
    host = Host()
    built, later = order(Spawn(spec(**CARD))), order(Spawn(spec(**CARD)), turn=2)
    host.acting.carry_out(Work(built))
    assert host.acting.carry_out(Undo(built)).outcome == "ok"
    assert (host.driver.guests(), host.free) == ([], 2)
    host.acting.carry_out(Work(later))
    host.acting.carry_out(Undo(built))
    assert (len(host.driver.guests()), host.free) == (1, 1)


def test_a_guest_that_is_not_there_any_more_gets_nothing_by_a_rebuild_that_fails(capsys):
    host = Host()
    assert host.do(Rebuild(spec(**CARD))).outcome == "aborted"
    assert (host.free, host.journal.holdings(GUEST)) == (2, [])
    capsys.readouterr()


def test_what_was_discarded_before_its_agent_died_is_given_back_though_nobody_wants_that_order_any_more():
    host, coming = Host(), order(Prepare(spec(**CARD)), turn=2)
    host.acting.carry_out(Work(coming))
    host.driver.discard(GUEST, coming.operation)
    assert host.free == 1
    host.acting.carry_out(Undo(order(Discard(), 2, turn=2)))
    assert (host.free, host.journal.holdings(GUEST)) == (2, [])


@pytest.mark.parametrize("task", [Work, Undo])
@pytest.mark.parametrize("has_come", [False, True])
def test_who_came_while_it_ran_is_spared_by_an_order_to_discard_that_says_so(task, has_come):
    shelf = MemoryShelf()
    source, host = fake(Script(), "source", shelf=shelf), Host(fake(Script(), HOST, shelf=shelf))
    source.spawn(replace(spec_of("one", "source"), uuid=GUEST), "built")
    moving = order(Prepare(spec(**CARD)), turn=2)
    to = host.acting.carry_out(Work(moving)).prepared
    if has_come:
        source.live_migrate(GUEST, to)
    answer = host.acting.carry_out(task(order(Discard(is_sparing=True), 2, turn=2)))
    assert answer.outcome == "ok"
    found = host.driver.inspect(GUEST)
    assert (found is not None and found.state == "running") is has_come
    assert (len(host.journal.holdings(GUEST)), host.free) == ((1, 1) if has_come else (0, 2))


def test_room_that_could_not_be_discarded_is_discarded_later_and_the_guest_beside_it_stays():
    fault = Fault(action="discard", kind="failed", times=1)
    host = Host(fake(Script(fault=(fault,)), HOST))
    host.do(Spawn(spec()))
    host.do(Prepare(spec(**CARD)), turn=2)
    discard = order(Discard(), 2, turn=2)
    assert host.acting.carry_out(Work(discard)).outcome == "failed"
    assert (len(host.journal.holdings(GUEST)), host.free) == (2, 1)
    assert host.acting.carry_out(Undo(discard)).outcome == "ok"
    assert (len(host.journal.holdings(GUEST)), host.free) == (1, 2)
    assert host.driver.inspect(GUEST).state == "running"


@pytest.mark.parametrize("act", [Power(is_on=False), Destroy(), Save(), Inspect()])
def test_of_other_orders_nothing_can_be_undone(act):
    host = Host()
    host.do(Spawn(spec()))
    assert host.acting.carry_out(Undo(order(act, turn=2))).outcome == "ok"
    assert host.driver.inspect(GUEST).state == "running"


@pytest.mark.parametrize("act", [Destroy(), LiveMigrate(TransferTarget(uuid=GUEST, node="host-b", address="host-b"))])
def test_what_a_guest_had_that_is_gone_is_given_back_though_nobody_wants_that_order_any_more(act):
    host = Host()
    host.do(Spawn(spec(**CARD)))
    host.acting.carry_out(Undo(order(act, turn=2)))
    assert host.free == 1
    host.driver.destroy(GUEST, "before its agent died")
    host.acting.carry_out(Undo(order(act, turn=2)))
    assert (host.free, host.journal.holdings(GUEST)) == (2, [])


def test_guests_are_destroyed_stopped_and_started_as_the_server_said():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    assert host.acting.carry_out(Clean(GUEST, "pause")).outcome == "ok"
    assert (host.driver.inspect(GUEST).state, host.journal.paused_guests()) == ("stopped", {GUEST})
    host.acting.carry_out(Clean(GUEST, "resume"))
    assert (host.driver.inspect(GUEST).state, host.journal.paused_guests()) == ("running", frozenset())
    host.acting.carry_out(Clean(GUEST, "destroy"))
    assert (host.driver.guests(), host.free) == ([], 2)


def test_what_is_not_a_hosts_own_gives_back_before_its_node_was_updated():
    before = Host()
    before.do(Spawn(spec(**CARD)))
    tracker = PlainTracker(before.driver, before.journal)
    acting = OrderExecutor(HOST, run=RUN, driver=before.driver, journal=before.journal, use_of=tracker.use)
    assert acting.carry_out(Clean(GUEST, "destroy")).outcome == "ok"
    assert (before.driver.guests(), Host(before.driver, before.journal).free) == ([], 2)


@pytest.mark.parametrize(("end", "number"), [(Discard, 1), (Settle, 1), (Destroy, 0)])
def test_a_move_ends_also_where_its_node_is_not_counted_in_this_life(end, number):
    before = Host()
    before.do(Spawn(spec(**CARD)))
    before.do(Prepare(spec(**CARD)), turn=2)
    tracker = PlainTracker(before.driver, before.journal)
    acting = OrderExecutor(HOST, run=RUN, driver=before.driver, journal=before.journal, use_of=tracker.use)
    act = end() if end is Destroy else end(order(Destroy(), turn=2).operation)
    assert acting.carry_out(Work(order(act, 2, turn=3))).outcome == "ok"
    assert len(before.journal.holdings(GUEST)) == number


def test_a_guest_that_cannot_be_destroyed_is_told_of(capsys):
    host = failing("destroy", "crash")
    assert host.acting.carry_out(Clean(GUEST, "destroy")).outcome == "aborted"
    assert '"fault"' in capsys.readouterr().err


def test_a_journal_that_is_lost_is_no_answer():
    host = Host()

    def lost(*_words):
        raise JournalLost("the disk is full")

    host.journal.hold = lost
    with pytest.raises(JournalLost):
        host.do(Spawn(spec()))
    assert host.driver.guests() == []


def test_guests_must_be_a_list_of_what_was_found():
    found = GuestReport(uuid=GUEST, node=HOST, operation="", state="running")
    assert check_guests((found,)) == [found]
    for wrong in (None, {GUEST: found}, [GUEST]):
        with pytest.raises(TypeError):
            check_guests(wrong)
