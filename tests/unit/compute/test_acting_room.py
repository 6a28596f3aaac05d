"""Limits and pieces of a host, as orders tell of them and as drivers are told."""

import pytest

from roost.model.host import HostFacts
from roost.model.work.orders import Destroy, Finish, Prepare, Rebuild, Spawn
from tests.support.agents.order_execution import CELLS, GUEST, Host, pinned
from tests.support.agents.scripted_agents import HOST, spec
from tests.support.fleets.worlds import uuid_named

PIECE = "CUSTOM_PMEM"
PIECES = {uuid_named(HOST): {PIECE: ["ns0", "ns1"]}}


def host_with_pieces(journal=None):
    """Give a host in one life of its agent."""
    host = Host(journal=journal)
    host.tracker.use(HOST).tell(HostFacts(numa=CELLS), providers=PIECES)
    return host


def outcome(answer):
    """Give what came of an order, with the problem."""
    return answer.outcome, answer.problem


DONE = ("ok", "")


@pytest.mark.shows("S009")
def test_a_guest_beyond_the_limits_that_its_order_tells_is_refused_also_by_later_lives():
    limited = {"held": {"VCPU": 1, "MEMORY_MB": 512}, "limits": {"memory_mb": 1023.0}}
    refused = "failed", "the host lacks room for 512 MiB memory: 512 of 1,023 that it may give out are in use"
    host = host_with_pieces()
    assert outcome(host.do(Spawn(spec("other", **limited)), of="other")) == DONE
    for _ in range(2):
        assert outcome(host.do(Spawn(spec(**limited)))) == refused
        host = host_with_pieces(host.journal)
    assert outcome(host.do(Spawn(spec("other", **limited)), of="other", is_again=True)) == DONE
    assert outcome(host.do(Prepare(spec("other", **limited)), 2, of="other", turn=2)) == refused
    host.do(Destroy(), 3, of="other", turn=2)
    assert outcome(host.do(Spawn(spec(**limited)))) == DONE


def test_a_guest_gets_the_pieces_that_it_was_let_have_also_when_it_comes_from_another_host():
    host, seen, held = host_with_pieces(), [], {PIECE: 1}
    host.driver.spawn = host.driver.finish = lambda guest, _: seen.append(guest.pieces)
    host.do(Spawn(spec("first", held=held)), of="first")
    host.do(Prepare(spec("second", held=held)), of="second")
    host.do(Finish(spec("second", held=held)), 2, of="second")
    assert seen == [("ns0",), ("ns1",)]
    refused = "failed", f"the host lacks 1 {PIECE}: 0 of 2 are free"
    assert outcome(host.do(Spawn(spec("third", held=held)), of="third")) == refused


def with_both(*cpus):
    """Give what a guest with both pieces and so many processors of its own asks for."""
    return {"held": {PIECE: 2, "MEMORY_MB": 512}, **pinned(*cpus)}


@pytest.mark.parametrize(("cpus", "others"), [((0,), (0, 1)), ((0, 1), (0,))], ids=["the same cells", "others"])
def test_a_guest_that_is_rebuilt_keeps_its_pieces_and_counts_once(cpus, others):
    host, seen = host_with_pieces(), []
    host.do(Spawn(spec(**with_both(0))))
    host.driver.rebuild = lambda guest, _: seen.append(guest.pieces)
    limited = {**with_both(*cpus), "limits": {"memory_mb": 512.0}}
    for _ in range(2):
        assert outcome(host.do(Rebuild(spec(**limited)), 2, turn=2)) == DONE
    assert seen == [("ns0", "ns1")] * 2
    host.driver.rebuild = None  # It breaks off.
    assert host.do(Rebuild(spec(**{**limited, **with_both(*others)})), 3, turn=3).outcome == "aborted"
    assert [each.use.pieces for each in host.journal.holdings(GUEST)] == [("ns0", "ns1")]
