"""Limits and pieces of a host, as orders tell of them and as drivers are told."""

import pytest

from roost.compute.acting import Acting
from roost.compute.journal import Journal
from roost.compute.tasks import Work
from roost.model.host import HostFacts
from roost.model.numa import NumaCell, NumaTopology
from roost.model.orders import Destroy, Finish, Prepare, Rebuild, Spawn
from roost.model.topology import InstanceCell, InstanceTopology
from tests.agents import HOST, RUN, PlainTracker, order, spec
from tests.drivers import fake
from tests.worlds import uuid_named

PIECE = "CUSTOM_PMEM"
CELLS = NumaTopology(cells=(NumaCell(id=0, pcpus=(0, 1, 2, 3), memory_mb=4096),))
PIECES = {uuid_named(HOST): {PIECE: ["ns0", "ns1"]}}


class Host:
    """A host in one life of its agent."""

    def __init__(self, journal=None):
        self.driver, self.journal = fake(host=HOST), journal or Journal(None)
        tracker = PlainTracker(self.driver, self.journal)
        tracker.update(HOST, is_startup=True).tell(HostFacts(numa=CELLS), providers=PIECES)
        self.acting = Acting(HOST, run=RUN, driver=self.driver, journal=self.journal, use_of=tracker.use)

    def do(self, act, number=1, *, is_again=False, **more):
        """Do an order, and give its outcome with the problem."""
        answer = self.acting.carry_out(Work(order(act, number, **more), is_again))
        return answer.outcome, answer.problem


DONE = ("ok", "")


@pytest.mark.shows("S009")
def test_a_guest_beyond_the_limits_that_its_order_tells_is_refused_also_by_later_lives():
    limited = {"held": {"VCPU": 1, "MEMORY_MB": 512}, "limits": {"memory_mb": 1023.0}}
    refused = "failed", "the host lacks room for 512 MiB memory: 512 of 1,023 that it may give out are in use"
    host = Host()
    assert host.do(Spawn(spec("other", **limited)), of="other") == DONE
    for _ in range(2):
        assert host.do(Spawn(spec(**limited))) == refused
        host = Host(host.journal)
    assert host.do(Spawn(spec("other", **limited)), of="other", is_again=True) == DONE
    assert host.do(Prepare(spec("other", **limited)), 2, of="other", turn=2) == refused
    host.do(Destroy(), 3, of="other", turn=2)
    assert host.do(Spawn(spec(**limited))) == DONE


def test_a_guest_gets_the_pieces_that_it_was_let_have_also_when_it_comes_from_another_host():
    host, seen, held = Host(), [], {PIECE: 1}
    host.driver.spawn = host.driver.finish = lambda guest, _: seen.append(guest.pieces)
    host.do(Spawn(spec("first", held=held)), of="first")
    host.do(Prepare(spec("second", held=held)), of="second")
    host.do(Finish(spec("second", held=held)), 2, of="second")
    assert seen == [("ns0",), ("ns1",)]
    refused = "failed", f"the host lacks 1 {PIECE}: 0 of 2 are free"
    assert host.do(Spawn(spec("third", held=held)), of="third") == refused


def pinned(count):
    """Give what a guest with so many processors of its own asks for."""
    cell = InstanceCell(id=0, pcpus=frozenset(range(count)), memory_mb=64, policy="dedicated")
    return {"held": {PIECE: 2, "MEMORY_MB": 512}, "topology": InstanceTopology(cells=(cell,))}


@pytest.mark.parametrize("count", [1, 2], ids=["the same cells", "others"])
def test_a_guest_that_is_rebuilt_keeps_its_pieces_and_counts_once(count):
    host, seen = Host(), []
    host.do(Spawn(spec(**pinned(1))))
    host.driver.rebuild = lambda guest, _: seen.append(guest.pieces)
    limited = {**pinned(count), "limits": {"memory_mb": 512.0}}
    for _ in range(2):
        assert host.do(Rebuild(spec(**limited)), 2, turn=2) == DONE
    host.driver.rebuild = None  # It breaks off, and is done again by the next life.
    assert host.do(Rebuild(spec(**{**limited, **pinned(3 - count)})), 3, turn=3)[0] == "aborted"
    assert seen == [("ns0", "ns1")] * 2
    again = Host(host.journal)
    assert [each.use.pieces for each in again.journal.holdings(uuid_named("guest"))] == [("ns0", "ns1")]
