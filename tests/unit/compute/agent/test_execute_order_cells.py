"""NUMA cells of guests during a rebuild or a live migration."""

import msgspec
import pytest

from roost.compute.agent.tasks import Undo, Work
from roost.model.devices.numa import MemoryPages, NumaTopology
from roost.model.devices.topology import InstanceCell, InstanceTopology
from roost.model.host import HostFacts
from roost.model.work.guest import TransferTarget
from roost.model.work.orders import Destroy, LiveMigrate, Prepare, Rebuild, Spawn
from tests.support.agents.driver_doubles import spec_of
from tests.support.agents.order_execution import CELLS, GUEST, Host, failing_host, pinned_cpus_on, pinned_guest
from tests.support.agents.scripted_agents import HOST, AgentDeath, order, spec
from tests.support.fleets.devices import pci_request


def rebuild_of(*cpus, image="new", turn=2):
    """Return a rebuild order for a guest with dedicated CPUs."""
    return order(Rebuild(spec(image=image, **pinned_guest(*cpus))), turn=turn)


def carry_out(host, task_order):
    """Carry out an order and return its answer."""
    return host.executor.carry_out(Work(task_order))


@pytest.mark.parametrize(("kind", "outcome"), [("failed", "failed"), ("crash", "aborted")])
@pytest.mark.parametrize("cpus", [(0, 1), (0,)], ids=["the same cells", "others"])
def test_failed_rebuild_keeps_the_pinned_cpus_of_the_guest(kind, outcome, cpus):
    host = failing_host("rebuild", kind)
    host.do(Spawn(spec("other", **pinned_guest(0, 1))), of="other")
    host.do(Spawn(spec(**pinned_guest(0, 1))))
    (before,) = host.journal.holdings(GUEST)
    assert host.do(Destroy(), turn=2, of="other").outcome == "ok"
    assert carry_out(host, rebuild_of(*cpus)).outcome == outcome
    runs_on = tuple(sorted(cpu for _, cpu in before.use.cells[0].pins.pairs))
    assert (host.journal.holdings(GUEST), pinned_cpus_on(host)) == ([before], runs_on)


def test_rebuild_with_the_same_topology_keeps_the_cells():
    host, cells = Host(), []
    host.do(Spawn(spec("other", **pinned_guest(0, 1))), of="other")
    host.do(Spawn(spec(**pinned_guest(0, 1))))
    (before,), rebuild = host.journal.holdings(GUEST), host.driver.rebuild
    host.do(Destroy(), turn=2, of="other")
    host.driver.rebuild = lambda guest, operation: (cells.append(guest.cells), rebuild(guest, operation))
    assert carry_out(host, rebuild_of(0, 1)).outcome == "ok"
    assert (cells, host.journal.holdings(GUEST)) == ([before.use.cells], [before])


@pytest.mark.parametrize(("kind", "outcome"), [("slow", "ok"), ("failed", "failed")])
def test_rebuild_with_another_topology_keeps_the_devices(kind, outcome):
    host, cards = failing_host("rebuild", kind), {"pci": (pci_request(count=2),)}
    assert host.do(Spawn(spec(**pinned_guest(0, 1), **cards))).outcome == "ok"
    for _ in range(2):  # The order may be delivered twice.
        answer = carry_out(host, order(Rebuild(spec(image="new", **pinned_guest(0), **cards)), turn=2))
        assert (answer.outcome, host.free) == (outcome, 0)
        outcome = "ok"
    assert host.do(Destroy(), turn=3).outcome == "ok"
    assert (host.free, host.journal.holdings(GUEST)) == (2, [])


def test_rebuild_with_another_topology_needs_room_beside_the_old_cells():
    host, counts = Host(), []
    host.do(Spawn(spec(**pinned_guest(0, 1))))
    rebuild = host.driver.rebuild
    host.driver.rebuild = lambda guest, operation: (counts.append(len(pinned_cpus_on(host))), rebuild(guest, operation))
    assert carry_out(host, rebuild_of(0)).outcome == "ok"
    assert (counts, len(pinned_cpus_on(host)), len(host.journal.holdings(GUEST))) == ([3], 1, 1)
    host.do(Spawn(spec("other", **pinned_guest(0, 1, 2))), of="other")
    assert carry_out(host, rebuild_of(0, 1, image="newer", turn=3)).problem.startswith("the host lacks room")
    assert (len(pinned_cpus_on(host)), len(host.journal.holdings(GUEST))) == (4, 1)


@pytest.mark.parametrize("is_rebuilt", [True, False])
@pytest.mark.parametrize("is_wanted", [True, False])
def test_interrupted_rebuild_leaves_only_the_cells_that_the_guest_uses(monkeypatch, is_rebuilt, is_wanted):
    host, rebuild_order = Host(), rebuild_of(0)
    host.do(Spawn(spec(**pinned_guest(0, 1))))
    rebuild = host.driver.rebuild

    def die(guest, operation):
        if is_rebuilt:
            rebuild(guest, operation)
        raise AgentDeath

    with monkeypatch.context() as patch:
        patch.setattr(host.driver, "rebuild", die)
        with pytest.raises(AgentDeath):
            carry_out(host, rebuild_order)
    assert len(pinned_cpus_on(host)) == 3
    again = Work(rebuild_order, is_resumed=True) if is_wanted else Undo(rebuild_order)
    assert host.executor.carry_out(again).outcome == "ok"
    count = 1 if is_rebuilt or is_wanted else 2
    assert (len(pinned_cpus_on(host)), len(host.journal.holdings(GUEST))) == (count, 1)


def host_with_pages(name, *sizes):
    """Return a host whose NUMA cell has memory pages of these sizes, in KiB."""
    host = Host(name=name)
    pages = tuple(MemoryPages(size_kb=size, total=2**20 // size) for size in sizes)
    cells = (msgspec.structs.replace(CELLS.cells[0], mempages=pages),)
    host.tracker.use(name).update_facts(HostFacts(numa=NumaTopology(cells=cells)))
    return host


@pytest.mark.parametrize(
    ("sizes", "changes", "problem"),
    [
        ((4, 2048), {}, "the memory pages of a running guest cannot change from 4 KiB to 2,048 KiB"),
        ((4, 2048), {"page_sizes": None}, ""),  # An older agent does not report page sizes.
        ((4,), {}, ""),
    ],
)
def test_live_migration_to_another_page_size_fails(monkeypatch, sizes, changes, problem):
    source, target = host_with_pages(HOST, 4), host_with_pages("target", *sizes)
    cell = InstanceCell(id=0, memory_mb=64, page_size="any")
    topology = {"topology": InstanceTopology(cells=(cell,))}
    source.do(Spawn(spec(**topology)))
    to = target.do(Prepare(spec_of("guest", "target", **topology)), turn=2).prepared
    assert to.page_sizes == (max(sizes),)
    monkeypatch.setattr(source.driver, "live_migrate", lambda *_: None)
    answer = source.do(LiveMigrate(msgspec.structs.replace(to, **changes)), 2, turn=2)
    assert (answer.outcome, answer.problem) == ("failed" if problem else "ok", problem)
    assert len(source.journal.holdings(GUEST)) == int(problem != "")


def test_rebuild_succeeds_after_the_journal_was_lost():
    host = Host()
    host.do(Spawn(spec()))
    assert carry_out(Host(host.driver), order(Rebuild(spec(image="new")), turn=2)).outcome == "ok"


def test_live_migration_succeeds_after_the_journal_was_lost(monkeypatch):
    source, to = Host(), TransferTarget(uuid=GUEST, node="target", address="target", page_sizes=(2048,))
    source.do(Spawn(spec()))
    monkeypatch.setattr(source.driver, "live_migrate", lambda *_: None)
    assert carry_out(Host(source.driver), order(LiveMigrate(to), turn=2)).outcome == "ok"
