"""Executing an order on a host: claim resources, call the driver, return the answer."""

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
from tests.support.agents.driver_doubles import fake_driver, spec_of
from tests.support.agents.order_execution import CARD, GUEST, Host, failing_host, pinned_cpus_on, pinned_guest
from tests.support.agents.scripted_agents import HOST, RUN, PlainTracker, order, spec
from tests.support.fleets.devices import pci_request
from tests.support.fleets.worlds import uuid_named


class FaultyDriver:
    """A driver that returns or raises the given results, by method."""

    def __init__(self, **answers):
        self._inner, self._answers = fake_driver(host=HOST), answers

    def __getattr__(self, name):
        if name not in self._answers:
            return getattr(self._inner, name)
        result = self._answers[name]

        def call(*_arguments, **_options):
            if isinstance(result, BaseException):
                raise result
            return result

        return call


def test_spawn_claims_resources_and_reports_the_running_guest():
    host = Host()
    answer = host.do(Spawn(spec(**CARD)))
    assert (answer.outcome, answer.found.state, answer.run) == ("ok", "running", RUN)
    assert host.free == 1
    assert [each.operation for each in host.journal.holdings(GUEST)] == [order(Destroy()).operation]


def test_driver_receives_the_claimed_numa_cells():
    topology = InstanceTopology(cells=(InstanceCell(id=0, pcpus=frozenset({0, 1}), memory_mb=64, policy="dedicated"),))
    host, guests = Host(), []
    host.driver.spawn = lambda guest, _: guests.append(guest)
    host.do(Spawn(spec(topology=topology)))
    assert [each.host_cell for each in guests[0].cells] == [0]


def test_guest_that_does_not_fit_fails_without_being_built():
    host = Host()
    host.do(Spawn(spec("other", pci=(pci_request(count=2),))), of="other")
    answer = host.do(Spawn(spec(**CARD)))
    assert answer.outcome == "failed"
    assert answer.problem.startswith("the host lacks free PCI devices: 1 ")
    assert host.driver.inspect(GUEST) is None


@pytest.mark.parametrize(
    ("kind", "outcome", "problem"),
    [
        ("failed", "failed", "spawn on host-a was made to fail (failed)"),
        ("aborted", "aborted", "spawn on host-a was made to fail (aborted)"),
        ("unready", "failed", "spawn on host-a was made to fail (unready)"),
        ("crash", "aborted", "FakeCrash: spawn on host-a was made to fail (crash)"),
    ],
)
def test_failed_build_leaves_no_guest_and_no_claim(kind, outcome, problem, capsys):
    host = failing_host("spawn", kind)
    answer = host.do(Spawn(spec(**CARD)))
    assert (answer.outcome, answer.problem) == (outcome, problem)
    assert (host.driver.guests(), host.free, host.journal.holdings(GUEST)) == ([], 2, [])
    assert ("Traceback" in capsys.readouterr().err) == (kind == "crash")


def test_any_driver_error_becomes_an_answer(capsys):
    host = Host()
    answer = host.do(Power(is_on=True))
    assert (answer.outcome, answer.problem) == ("aborted", "NotFound: host host-a has no complete guest " + GUEST)
    assert Host(FaultyDriver(spawn=SystemExit("bye"))).do(Spawn(spec())).problem == "SystemExit: bye"
    assert len(Host(FaultyDriver(spawn=ValueError("x" * 9_999))).do(Spawn(spec())).problem) == PROBLEM_MAX
    assert Host(FaultyDriver(spawn=BuildFailed("a\0b\udcff"))).do(Spawn(spec())).problem == "a?b?"
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
def test_unsupported_capability_aborts_without_calling_the_driver(monkeypatch, act, name, problem):
    call = Mock(return_value="image")
    monkeypatch.setattr(Fake, name, call)
    host = Host()
    assert host.do(Spawn(spec())).outcome == "ok"
    monkeypatch.setattr(Fake, "capabilities", Capabilities())
    answer = host.do(act)
    assert (answer.outcome, answer.problem, call.called) == ("aborted", problem, False)
    assert host.driver.inspect(GUEST).state == "running"
    monkeypatch.setattr(Fake, "capabilities", Capabilities(can_live_migrate=True, can_save=True))
    assert (host.do(act).outcome, call.called) == ("ok", True)


@pytest.mark.parametrize(
    ("results", "act", "problem"),
    [
        ({"prepare": 1}, Prepare(spec()), "TypeError: prepare of the driver returned int, not TransferTarget"),
        ({"save": ""}, Save(), "TypeError: save of the driver returned no id of an image"),
        ({"inspect": "here"}, Inspect(), "TypeError: inspect of the driver returned str, not GuestReport"),
        (
            {"prepare": TransferTarget(uuid=uuid_named("other"), node=HOST, address="a")},
            Prepare(spec()),
            f"TypeError: prepare of the driver returned an address for {uuid_named('other')} on {HOST}",
        ),
        (
            {"prepare": TransferTarget(uuid=GUEST, node=HOST, address=7)},
            Prepare(spec()),
            (
                "TypeError: prepare of the driver returned an invalid TransferTarget: "
                "Expected `str`, got `int` - at `$.address`"
            ),
        ),
        (
            {"inspect": GuestReport(uuid=GUEST, node=HOST, operation="", state="merry")},
            Inspect(),
            (
                "TypeError: inspect of the driver returned an invalid GuestReport: "
                "Invalid enum value 'merry' - at `$.state`"
            ),
        ),
        ({"save": "\0"}, Save(), "TypeError: save of the driver returned no id of an image"),
    ],
)
def test_invalid_driver_result_aborts_the_order(results, act, problem, capsys):
    answer = Host(FaultyDriver(**results)).do(act)
    assert (answer.outcome, answer.problem) == ("aborted", problem)
    capsys.readouterr()


def test_spawn_succeeds_when_inspect_fails():
    answer = Host(FaultyDriver(inspect=ValueError("no"))).do(Spawn(spec()))
    assert (answer.outcome, answer.found) == ("ok", None)


def test_order_with_mismatched_guest_uuid_is_rejected(capsys):
    assert "and its guest is" in Host().do(Spawn(spec("other"))).problem
    capsys.readouterr()


def test_destroy_releases_everything_a_guest_holds():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    assert host.do(Power(is_on=False), 2).found.state == "stopped"
    assert host.do(Save(), 3).saved
    assert host.do(Rebuild(spec(image="new", **CARD)), turn=2).found.operation == order(Destroy(), turn=2).operation
    assert host.free == 1
    answer = host.do(Destroy(), turn=3)
    assert (answer.outcome, answer.found, host.free, host.journal.holdings(GUEST)) == ("ok", None, 2, [])


def test_failed_destroy_releases_a_guest_that_is_gone():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    host.driver.destroy(GUEST, "earlier")  # An earlier process died before it recorded this.

    def refuse(*_arguments):
        raise BuildFailed("there is no such guest")

    host.driver.destroy = refuse
    answer = host.do(Destroy(), turn=2)
    assert (answer.outcome, host.free, host.journal.holdings(GUEST)) == ("failed", 2, [])


def test_reboot_stops_the_guest_and_starts_it_again():
    host = Host()
    host.do(Spawn(spec()))
    assert host.do(Reboot(), turn=2).found.state == "running"
    assert host.driver.console(GUEST).splitlines()[-2:] == [f"stopped on {HOST}", f"running on {HOST}"]


def test_spawn_completed_before_restart_is_not_repeated():
    host = Host()
    build = order(Spawn(spec(**CARD)))
    host.executor.carry_out(Work(build))
    host.driver.spawn = None
    answer = host.executor.carry_out(Work(build, is_resumed=True))
    assert (answer.outcome, answer.found.operation) == ("ok", build.operation)


def test_half_built_guest_is_completed_after_restart():
    host = Host()
    host.driver._put(half_built_guest(order(Spawn(spec()))))
    answer = host.do(Spawn(spec(**CARD)), is_resumed=True)
    assert (answer.found.state, host.free) == ("running", 1)


def half_built_guest(build):
    return FakeGuest(spec=build.act.guest, operation=build.operation, state="building")


# --- migrations and resizes ---


def test_cold_migration_claims_on_target_and_releases_source_on_destroy():
    shelf = MemoryShelf()
    source, target = (
        Host(fake_driver(host=HOST, shelf=shelf)),
        Host(fake_driver(host="host-b", shelf=shelf), name="host-b"),
    )
    source.do(Spawn(spec(**CARD)))
    arrival = card_guest_on("host-b")
    to = target.do(Prepare(arrival), turn=2, host="host-b").prepared
    source.do(Power(is_on=False), 2, turn=2)
    source.do(SendDisk(to), 3, turn=2)
    assert target.do(Finish(arrival), 4, turn=2).found.state == "running"
    assert target.do(Finish(arrival), 4, turn=2, is_resumed=True).outcome == "ok"
    assert source.do(Destroy(), 5, turn=2).outcome == "ok"
    assert source.free == 2
    assert list(target.journal.instances("host-b")) == [GUEST]


def test_live_migration_releases_the_source():
    shelf = MemoryShelf()
    source, target = (
        Host(fake_driver(host=HOST, shelf=shelf)),
        Host(fake_driver(host="host-b", shelf=shelf), name="host-b"),
    )
    source.do(Spawn(spec(**CARD)))
    to = target.do(Prepare(card_guest_on("host-b")), turn=2).prepared
    assert source.do(AbortMigration(), turn=2).outcome == "ok"
    answer = source.do(LiveMigrate(to), 2, turn=2)
    assert (answer.outcome, answer.found, source.free) == ("ok", None, 2)


def test_resize_in_place_holds_both_sizes_until_discarded():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    before = host.journal.holdings(GUEST)
    host.do(Prepare(spec(pci=(pci_request(count=1),))), turn=2)
    assert (host.free, len(host.journal.holdings(GUEST))) == (0, 2)
    assert len(host.journal.migrations(HOST)) == 1
    assert host.do(Discard(), 2, turn=2).outcome == "ok"
    assert (host.free, host.journal.holdings(GUEST)) == (1, before)


@pytest.mark.parametrize("is_here", [True, False])
def test_repeated_prepare_claims_once(is_here):
    host = Host()
    if is_here:
        host.do(Spawn(spec(**CARD)))
    before = host.free
    for _ in range(2):
        assert host.do(Prepare(spec(**CARD)), turn=2, is_resumed=True).outcome == "ok"
        assert host.free == before - 1
    assert host.do(Discard(), 2, turn=2).outcome == "ok"
    assert (host.free, len(host.journal.holdings(GUEST))) == (before, int(is_here))


@pytest.mark.parametrize(("end", "count"), [(Settle, 2), (Discard, 1)])
def test_resize_in_place_pins_cpus_for_both_sizes_until_it_ends(end, count):
    host, small, large = Host(), spec(**pinned_guest(0)), spec(**pinned_guest(0, 1))
    host.do(Spawn(small))
    to = host.do(Prepare(large), turn=2).prepared
    host.do(Power(is_on=False), 2, turn=2)
    assert host.do(SendDisk(to), 3, turn=2).outcome == "ok"
    assert host.do(Finish(large), 4, turn=2).found.state == "running"
    assert len(pinned_cpus_on(host)) == 3
    assert host.do(Spawn(spec("other", **pinned_guest(0, 1))), of="other").outcome == "failed"
    for _ in range(2):
        assert host.do(end(order(Finish(large), turn=2).operation), turn=3).outcome == "ok"
        assert len(pinned_cpus_on(host)) == count
    assert len(host.journal.holdings(GUEST)) == 1
    assert host.do(Destroy(), turn=4).outcome == "ok"
    assert len(pinned_cpus_on(host)) == 0


def test_discard_after_crashed_resize_restores_the_previous_claims():
    host = failing_host("finish", "crash")
    host.do(Spawn(spec(**CARD)))
    before, larger = host.journal.holdings(GUEST), spec(pci=(pci_request(count=1),))
    to = host.do(Prepare(larger), turn=2).prepared
    host.do(Power(is_on=False), 2, turn=2)
    host.do(SendDisk(to), 3, turn=2)
    assert host.do(Finish(larger), 4, turn=2).outcome == "aborted"
    assert host.do(Finish(larger), 4, turn=2, is_resumed=True).outcome == "failed"  # The agent recorded nothing.
    assert host.do(Discard(), 5, turn=2).outcome == "ok"
    assert (host.free, host.journal.holdings(GUEST)) == (1, before)


def test_undone_guest_with_a_prepared_resize_releases_everything():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    host.do(Prepare(spec(pci=(pci_request(count=1),))), turn=2)
    assert host.executor.carry_out(Undo(order(Spawn(spec(**CARD))))).outcome == "ok"
    assert host.driver.inspect(GUEST) is None
    assert host.do(Discard(), 2, turn=2).outcome == "ok"
    assert (host.free, host.journal.holdings(GUEST)) == (2, [])


def test_discard_of_a_refused_resize_keeps_the_guests_claims():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    assert host.do(Prepare(spec(pci=(pci_request(count=2),))), turn=2).outcome == "failed"
    host.do(Discard(), 2, turn=2)
    assert (host.free, host.driver.inspect(GUEST).state) == (1, "running")


def card_guest_on(node):
    return spec_of("guest", node, **CARD)


def test_failed_build_and_failed_cleanup_report_the_leftover_guest():
    faults = (Fault(action="spawn", kind="crash", times=1), Fault(action="destroy", kind="failed", times=1))
    host = Host(fake_driver(Script(fault=faults), HOST))
    build = order(Spawn(spec()))
    answer = host.executor.carry_out(Work(build))
    assert (answer.outcome, answer.found) == (
        "aborted",
        GuestReport(uuid=GUEST, node=HOST, operation=build.operation, state="building"),
    )
    assert host.driver.inspect(GUEST) is not None
    assert host.executor.carry_out(Undo(build)).outcome == "ok"
    assert host.driver.inspect(GUEST) is None


# --- undo, and the cleanup that the server requests at registration ---


def test_undo_destroys_a_build_unless_a_later_order_adopted_it():
    host = Host()
    build, later_build = order(Spawn(spec(**CARD))), order(Spawn(spec(**CARD)), turn=2)
    host.executor.carry_out(Work(build))
    assert host.executor.carry_out(Undo(build)).outcome == "ok"
    assert (host.driver.guests(), host.free) == ([], 2)
    host.executor.carry_out(Work(later_build))
    host.executor.carry_out(Undo(build))
    assert (len(host.driver.guests()), host.free) == (1, 1)


def test_undo_of_an_unrecorded_discard_releases_the_claims():
    host, arrival = Host(), order(Prepare(spec(**CARD)), turn=2)
    host.executor.carry_out(Work(arrival))
    host.driver.discard(GUEST, arrival.operation)
    assert host.free == 1
    host.executor.carry_out(Undo(order(Discard(), 2, turn=2)))
    assert (host.free, host.journal.holdings(GUEST)) == (2, [])


@pytest.mark.parametrize("task", [Work, Undo])
@pytest.mark.parametrize("has_come", [False, True])
def test_sparing_discard_keeps_a_guest_that_has_arrived(task, has_come):
    shelf = MemoryShelf()
    source, host = fake_driver(Script(), "source", shelf=shelf), Host(fake_driver(Script(), HOST, shelf=shelf))
    source.spawn(replace(spec_of("one", "source"), uuid=GUEST), "built")
    prepare = order(Prepare(spec(**CARD)), turn=2)
    to = host.executor.carry_out(Work(prepare)).prepared
    if has_come:
        source.live_migrate(GUEST, to)
    answer = host.executor.carry_out(task(order(Discard(is_sparing=True), 2, turn=2)))
    assert answer.outcome == "ok"
    found = host.driver.inspect(GUEST)
    assert (found is not None and found.state == "running") is has_come
    assert (len(host.journal.holdings(GUEST)), host.free) == ((1, 1) if has_come else (0, 2))


def test_undo_retries_a_failed_discard_and_keeps_the_guest():
    fault = Fault(action="discard", kind="failed", times=1)
    host = Host(fake_driver(Script(fault=(fault,)), HOST))
    host.do(Spawn(spec()))
    host.do(Prepare(spec(**CARD)), turn=2)
    discard = order(Discard(), 2, turn=2)
    assert host.executor.carry_out(Work(discard)).outcome == "failed"
    assert (len(host.journal.holdings(GUEST)), host.free) == (2, 1)
    assert host.executor.carry_out(Undo(discard)).outcome == "ok"
    assert (len(host.journal.holdings(GUEST)), host.free) == (1, 2)
    assert host.driver.inspect(GUEST).state == "running"


@pytest.mark.parametrize("act", [Power(is_on=False), Destroy(), Save(), Inspect()])
def test_undo_of_other_orders_leaves_the_guest_running(act):
    host = Host()
    host.do(Spawn(spec()))
    assert host.executor.carry_out(Undo(order(act, turn=2))).outcome == "ok"
    assert host.driver.inspect(GUEST).state == "running"


@pytest.mark.parametrize("act", [Destroy(), LiveMigrate(TransferTarget(uuid=GUEST, node="host-b", address="host-b"))])
def test_undo_of_destroy_or_live_migrate_releases_a_guest_that_is_gone(act):
    host = Host()
    host.do(Spawn(spec(**CARD)))
    host.executor.carry_out(Undo(order(act, turn=2)))
    assert host.free == 1
    host.driver.destroy(GUEST, "before its agent died")
    host.executor.carry_out(Undo(order(act, turn=2)))
    assert (host.free, host.journal.holdings(GUEST)) == (2, [])


def test_clean_pauses_resumes_and_destroys_guests():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    assert host.executor.carry_out(Clean(GUEST, "pause")).outcome == "ok"
    assert (host.driver.inspect(GUEST).state, host.journal.list_paused()) == ("stopped", {GUEST})
    host.executor.carry_out(Clean(GUEST, "resume"))
    assert (host.driver.inspect(GUEST).state, host.journal.list_paused()) == ("running", frozenset())
    host.executor.carry_out(Clean(GUEST, "destroy"))
    assert (host.driver.guests(), host.free) == ([], 2)


def test_clean_destroy_releases_claims_before_the_node_is_tracked():
    before = Host()
    before.do(Spawn(spec(**CARD)))
    tracker = PlainTracker(before.driver, before.journal)
    executor = OrderExecutor(HOST, run=RUN, driver=before.driver, journal=before.journal, use_of=tracker.use)
    assert executor.carry_out(Clean(GUEST, "destroy")).outcome == "ok"
    assert (before.driver.guests(), Host(before.driver, before.journal).free) == ([], 2)


@pytest.mark.parametrize(("end", "number"), [(Discard, 1), (Settle, 1), (Destroy, 0)])
def test_resize_ends_before_the_node_is_tracked_after_restart(end, number):
    before = Host()
    before.do(Spawn(spec(**CARD)))
    before.do(Prepare(spec(**CARD)), turn=2)
    tracker = PlainTracker(before.driver, before.journal)
    executor = OrderExecutor(HOST, run=RUN, driver=before.driver, journal=before.journal, use_of=tracker.use)
    act = end() if end is Destroy else end(order(Destroy(), turn=2).operation)
    assert executor.carry_out(Work(order(act, 2, turn=3))).outcome == "ok"
    assert len(before.journal.holdings(GUEST)) == number


def test_failed_clean_destroy_is_logged_as_a_fault(capsys):
    host = failing_host("destroy", "crash")
    assert host.executor.carry_out(Clean(GUEST, "destroy")).outcome == "aborted"
    assert '"fault"' in capsys.readouterr().err


def test_lost_journal_raises_instead_of_answering():
    host = Host()

    def fail(*_arguments):
        raise JournalLost("the disk is full")

    host.journal.hold = fail
    with pytest.raises(JournalLost):
        host.do(Spawn(spec()))
    assert host.driver.guests() == []


def test_check_guests_accepts_only_guest_reports():
    found = GuestReport(uuid=GUEST, node=HOST, operation="", state="running")
    assert check_guests((found,)) == [found]
    for wrong in (None, {GUEST: found}, [GUEST]):
        with pytest.raises(TypeError):
            check_guests(wrong)
