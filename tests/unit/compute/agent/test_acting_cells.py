"""The cells of guests that are rebuilt, or move while they run."""

import msgspec
import pytest

from roost.compute.agent.tasks import Undo, Work
from roost.model.devices.numa import MemoryPages, NumaTopology
from roost.model.devices.topology import InstanceCell, InstanceTopology
from roost.model.host import HostFacts
from roost.model.work.guest import TransferTarget
from roost.model.work.orders import Destroy, LiveMigrate, Prepare, Rebuild, Spawn
from tests.support.agents.driver_doubles import spec_of
from tests.support.agents.order_execution import CELLS, GUEST, Host, failing, pinned, pinned_on
from tests.support.agents.scripted_agents import HOST, Dead, order, spec
from tests.support.fleets.devices import ask


def rebuild_of(*cpus, image="new", turn=2):
    """Give an order for a guest of an image that wants so many processors of its own."""
    return order(Rebuild(spec(image=image, **pinned(*cpus))), turn=turn)


def done(host, wanted):
    """Give the answer to an order."""
    return host.acting.carry_out(Work(wanted))


@pytest.mark.parametrize(("kind", "outcome"), [("failed", "failed"), ("crash", "aborted")])
@pytest.mark.parametrize("cpus", [(0, 1), (0,)], ids=["the same cells", "others"])
def test_a_rebuild_that_fails_leaves_a_guest_the_processors_on_which_it_runs(kind, outcome, cpus):
    host = failing("rebuild", kind)
    host.do(Spawn(spec("other", **pinned(0, 1))), of="other")
    host.do(Spawn(spec(**pinned(0, 1))))
    (before,) = host.journal.holdings(GUEST)
    assert host.do(Destroy(), turn=2, of="other").outcome == "ok"
    assert done(host, rebuild_of(*cpus)).outcome == outcome
    runs_on = tuple(sorted(cpu for _, cpu in before.use.cells[0].pins.pairs))
    assert (host.journal.holdings(GUEST), pinned_on(host)) == ([before], runs_on)


def test_a_rebuild_by_which_a_guest_wants_what_it_has_keeps_that():
    host, cells = Host(), []
    host.do(Spawn(spec("other", **pinned(0, 1))), of="other")
    host.do(Spawn(spec(**pinned(0, 1))))
    (before,), rebuild = host.journal.holdings(GUEST), host.driver.rebuild
    host.do(Destroy(), turn=2, of="other")
    host.driver.rebuild = lambda guest, operation: (cells.append(guest.cells), rebuild(guest, operation))
    assert done(host, rebuild_of(0, 1)).outcome == "ok"
    assert (cells, host.journal.holdings(GUEST)) == ([before.use.cells], [before])


@pytest.mark.parametrize(("kind", "outcome"), [("slow", "ok"), ("failed", "failed")])
def test_a_rebuild_by_which_a_guest_wants_other_cells_leaves_it_its_devices(kind, outcome):
    host, cards = failing("rebuild", kind), {"pci": (ask(count=2),)}
    assert host.do(Spawn(spec(**pinned(0, 1), **cards))).outcome == "ok"
    for _ in range(2):  # The order may come twice.
        rebuilt = done(host, order(Rebuild(spec(image="new", **pinned(0), **cards)), turn=2))
        assert (rebuilt.outcome, host.free) == (outcome, 0)
        outcome = "ok"
    assert host.do(Destroy(), turn=3).outcome == "ok"
    assert (host.free, host.journal.holdings(GUEST)) == (2, [])


def test_a_rebuild_by_which_a_guest_wants_other_cells_needs_room_for_them_beside_what_it_has():
    host, seen = Host(), []
    host.do(Spawn(spec(**pinned(0, 1))))
    rebuild = host.driver.rebuild
    host.driver.rebuild = lambda guest, operation: (seen.append(len(pinned_on(host))), rebuild(guest, operation))
    assert done(host, rebuild_of(0)).outcome == "ok"
    assert (seen, len(pinned_on(host)), len(host.journal.holdings(GUEST))) == ([3], 1, 1)
    host.do(Spawn(spec("other", **pinned(0, 1, 2))), of="other")
    assert done(host, rebuild_of(0, 1, image="newer", turn=3)).problem.startswith("the host lacks room")
    assert (len(pinned_on(host)), len(host.journal.holdings(GUEST))) == (4, 1)


@pytest.mark.parametrize("is_rebuilt", [True, False])
@pytest.mark.parametrize("is_wanted", [True, False])
def test_after_a_rebuild_in_which_its_agent_died_a_guest_has_what_it_runs_on(monkeypatch, is_rebuilt, is_wanted):
    host, wanted = Host(), rebuild_of(0)
    host.do(Spawn(spec(**pinned(0, 1))))
    rebuild = host.driver.rebuild

    def dies(guest, operation):
        if is_rebuilt:
            rebuild(guest, operation)
        raise Dead

    with monkeypatch.context() as patched:
        patched.setattr(host.driver, "rebuild", dies)
        with pytest.raises(Dead):
            done(host, wanted)
    assert len(pinned_on(host)) == 3
    again = Work(wanted, is_again=True) if is_wanted else Undo(wanted)
    assert host.acting.carry_out(again).outcome == "ok"
    count = 1 if is_rebuilt or is_wanted else 2
    assert (len(pinned_on(host)), len(host.journal.holdings(GUEST))) == (count, 1)


def with_pages(name, *sizes):
    """Give a host whose cell has pages of some sizes, KiB."""
    host = Host(name=name)
    pages = tuple(MemoryPages(size_kb=size, total=2**20 // size) for size in sizes)
    cells = (msgspec.structs.replace(CELLS.cells[0], mempages=pages),)
    host.tracker.use(name).tell(HostFacts(numa=NumaTopology(cells=cells)))
    return host


@pytest.mark.parametrize(
    ("sizes", "changes", "problem"),
    [
        ((4, 2048), {}, "the memory pages of a guest that runs cannot change from 4 KiB to 2,048 KiB"),
        ((4, 2048), {"page_sizes": None}, ""),  # As an older agent tells it.
        ((4,), {}, ""),
    ],
)
def test_a_guest_that_runs_does_not_move_to_pages_of_another_size(monkeypatch, sizes, changes, problem):
    source, target = with_pages(HOST, 4), with_pages("target", *sizes)
    cell = InstanceCell(id=0, memory_mb=64, page_size="any")
    wanted = {"topology": InstanceTopology(cells=(cell,))}
    source.do(Spawn(spec(**wanted)))
    to = target.do(Prepare(spec_of("guest", "target", **wanted)), turn=2).prepared
    assert to.page_sizes == (max(sizes),)
    monkeypatch.setattr(source.driver, "live_migrate", lambda *_: None)
    answer = source.do(LiveMigrate(msgspec.structs.replace(to, **changes)), 2, turn=2)
    assert (answer.outcome, answer.problem) == ("failed" if problem else "ok", problem)
    assert len(source.journal.holdings(GUEST)) == int(problem != "")


def test_a_guest_that_only_a_lost_journal_knew_is_rebuilt():
    host = Host()
    host.do(Spawn(spec()))
    assert done(Host(host.driver), order(Rebuild(spec(image="new")), turn=2)).outcome == "ok"


def test_a_guest_that_only_a_lost_journal_knew_moves_while_it_runs(monkeypatch):
    source, to = Host(), TransferTarget(uuid=GUEST, node="target", address="target", page_sizes=(2048,))
    source.do(Spawn(spec()))
    monkeypatch.setattr(source.driver, "live_migrate", lambda *_: None)
    assert done(Host(source.driver), order(LiveMigrate(to), turn=2)).outcome == "ok"
