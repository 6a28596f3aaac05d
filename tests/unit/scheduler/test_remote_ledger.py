"""Claims to take back from a remote Placement that refuses it."""

import pytest

from roost.errors import Conflict
from roost.model.placement.remote import RemoteConsumer
from roost.model.request import Move
from roost.observe import log
from roost.scheduler.remote_ledger import RemoteLedger
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import small_request

ME = uuid_named("me")
OLD, NEW = {uuid_named("old"): {"VCPU": 1}}, {uuid_named("new"): {"VCPU": 1}}


class Remote:
    """A remote Placement with one consumer, which refuses some replacements."""

    def __init__(self, *, refusals):
        self.held, self.refusals, self.attempts = OLD, refusals, 0

    def claim(self, *_, **__):
        """Refuse: the consumer has allocations."""
        raise Conflict("it has allocations")

    def allocations_of(self, _):
        """Return the allocations."""
        return RemoteConsumer(allocations=self.held, generation=1)

    def replace(self, _, allocations, **__):
        """Replace the allocations, except for the refusals after the first time."""
        self.attempts += 1
        if 1 < self.attempts <= 1 + self.refusals:
            return False
        self.held = allocations
        return True


def owing(remote):
    """Return a ledger with the claim of a move to take back."""
    ledger = RemoteLedger(remote)
    request = small_request(move=Move(instance_uuid=ME))
    assert ledger.claim(ME, NEW, request)
    assert remote.held == OLD | NEW
    ledger.owe(ME)
    return ledger


def test_refused_return_of_allocations_is_repeated():
    remote = Remote(refusals=2)
    ledger = owing(remote)
    for held in (OLD | NEW, OLD | NEW, OLD, OLD):
        ledger.settle()
        assert remote.held == held
    assert remote.attempts == 4


def test_return_is_given_up_after_many_refusals():
    remote, events = Remote(refusals=1_000), []
    ledger = owing(remote)
    with log.redirect_events(events.append):
        for _ in range(20):
            ledger.settle()
    assert remote.attempts == 12
    assert [(each["event"], each["consumer"]) for each in events] == [("claim_kept", ME)]


@pytest.mark.parametrize("held", [NEW, {}])
def test_later_change_is_not_undone(held):
    remote = Remote(refusals=1_000)
    ledger = owing(remote)
    ledger.settle()
    remote.held = held
    ledger.settle()
    ledger.settle()
    assert (remote.held, remote.attempts) == (held, 2)
