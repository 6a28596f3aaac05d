"""Limits in orders, and pieces that the driver receives."""

import pytest

from roost.model.host import HostFacts
from roost.model.work.orders import Destroy, Finish, Prepare, Rebuild, Spawn
from tests.support.agents.order_execution import CELLS, GUEST, Host, pinned_guest
from tests.support.agents.scripted_agents import HOST, spec
from tests.support.fleets.worlds import uuid_named

PIECE = "CUSTOM_PMEM"
PIECES = {uuid_named(HOST): {PIECE: ["ns0", "ns1"]}}


def host_with_pieces(journal=None):
    """Return a host whose agent has just started."""
    host = Host(journal=journal)
    host.tracker.use(HOST).update_facts(HostFacts(numa=CELLS), providers=PIECES)
    return host


def outcome(answer):
    """Return the outcome of an order, and the problem."""
    return answer.outcome, answer.problem


DONE = ("ok", "")


@pytest.mark.shows("S009")
def test_guest_beyond_the_limits_of_its_order_is_refused_after_restart_too():
    fields = {"held": {"VCPU": 1, "MEMORY_MB": 512}, "limits": {"memory_mb": 1023.0}}
    refusal = "failed", "the host lacks room for 512 MiB memory: 512 of 1,023 that it may give out are in use"
    host = host_with_pieces()
    assert outcome(host.do(Spawn(spec("other", **fields)), of="other")) == DONE
    for _ in range(2):
        assert outcome(host.do(Spawn(spec(**fields)))) == refusal
        host = host_with_pieces(host.journal)
    assert outcome(host.do(Spawn(spec("other", **fields)), of="other", is_resumed=True)) == DONE
    assert outcome(host.do(Prepare(spec("other", **fields)), 2, of="other", turn=2)) == refusal
    host.do(Destroy(), 3, of="other", turn=2)
    assert outcome(host.do(Spawn(spec(**fields)))) == DONE


def test_spawn_and_finish_pass_the_claimed_pieces_to_the_driver():
    host, pieces, held = host_with_pieces(), [], {PIECE: 1}
    host.driver.spawn = host.driver.finish = lambda guest, _: pieces.append(guest.pieces)
    host.do(Spawn(spec("first", held=held)), of="first")
    host.do(Prepare(spec("second", held=held)), of="second")
    host.do(Finish(spec("second", held=held)), 2, of="second")
    assert pieces == [("ns0",), ("ns1",)]
    refusal = "failed", f"the guest needs 1 {PIECE}, but 0 of 2 are free"
    assert outcome(host.do(Spawn(spec("third", held=held)), of="third")) == refusal


def with_both_pieces(*cpus):
    """Return the spec fields of a guest with both pieces and dedicated CPUs."""
    return {"held": {PIECE: 2, "MEMORY_MB": 512}, **pinned_guest(*cpus)}


@pytest.mark.parametrize(("cpus", "others"), [((0,), (0, 1)), ((0, 1), (0,))], ids=["same cells", "other cells"])
def test_rebuild_keeps_pieces_and_counts_the_guest_once(cpus, others):
    host, pieces = host_with_pieces(), []
    host.do(Spawn(spec(**with_both_pieces(0))))
    host.driver.rebuild = lambda guest, _: pieces.append(guest.pieces)
    fields = {**with_both_pieces(*cpus), "limits": {"memory_mb": 512.0}}
    for _ in range(2):
        assert outcome(host.do(Rebuild(spec(**fields)), 2, turn=2)) == DONE
    assert pieces == [("ns0", "ns1")] * 2
    host.driver.rebuild = None  # The driver call raises.
    assert host.do(Rebuild(spec(**{**fields, **with_both_pieces(*others)})), 3, turn=3).outcome == "aborted"
    assert [each.use.pieces for each in host.journal.holdings(GUEST)] == [("ns0", "ns1")]
