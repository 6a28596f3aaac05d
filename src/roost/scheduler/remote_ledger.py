"""Claims at a remote Placement, and those to take back because their answer was lost or their request failed."""

import msgspec

from roost.errors import Conflict, PlacementGone
from roost.model.placement.remote import Amounts
from roost.model.request import Request
from roost.observe import log
from roost.ports import RemotePlacement

# Further acts until a refused return of allocations is given up.
_REFUSALS_MAX = 10


class _Addition(msgspec.Struct, frozen=True, kw_only=True):
    """Allocations of a consumer before and after a claim that adds to them."""

    before: Amounts
    after: Amounts
    project_id: str
    user_id: str


class RemoteLedger:
    """Claims and releases consumers at a remote Placement.

    Args:
        remote: the remote Placement.
    """

    def __init__(self, remote: RemotePlacement) -> None:
        self._remote = remote
        self._additions: dict[str, _Addition] = {}  # of the present act, by consumer
        # Consumers with a claim to take back; None: all their allocations are from this claim.
        self._owed: dict[str, _Addition | None] = {}
        self._refusals: dict[str, int] = {}  # of consumers with a claim to take back

    def claim(self, consumer_uuid: str, allocations: Amounts, request: Request) -> bool:
        """Claim amounts for a consumer; return whether it succeeded.

        A move keeps the previous allocations of its instance, if it has any: it adds amounts on further providers. On
        a provider with previous amounts, these stay.

        Raises:
            Conflict: the consumer has allocations, and the request is not a move.
            PlacementGone: the remote Placement does not answer. The claim is marked for ``settle``.

        Source:
            nova/scheduler/client/report.py, claim_resources.
        """
        self._additions.clear()
        try:
            return self._claim(consumer_uuid, allocations, request)
        except PlacementGone:
            self.owe(consumer_uuid)
            raise

    def release(self, consumer_uuid: str) -> None:
        """Release all allocations of a consumer.

        Raises:
            PlacementGone: the remote Placement does not answer.
        """
        self._remote.release(consumer_uuid)

    def owe(self, consumer_uuid: str) -> None:
        """Mark the last claim of a consumer, to be taken back by ``settle``."""
        self._owed[consumer_uuid] = self._additions.pop(consumer_uuid, None)

    def settle(self) -> None:
        """Take back the marked claims. A refused one stays marked for the next call, up to a limit.

        Raises:
            PlacementGone: the remote Placement does not answer; the remaining claims stay marked.
        """
        for uuid, addition in list(self._owed.items()):
            if addition is None:
                self._remote.release(uuid)
            elif not self._take_back(uuid, addition):
                continue
            del self._owed[uuid]
            self._refusals.pop(uuid, None)

    def _claim(self, uuid: str, allocations: Amounts, request: Request) -> bool:
        remote, project_id, user_id = self._remote, request.project_id, request.user_id
        if request.move is None:
            return remote.claim(uuid, allocations, project_id=project_id, user_id=user_id)
        # Most moving instances have no allocations: those of a resize belong to its migration. So try this case first.
        addition = _Addition(before={}, after=allocations, project_id=project_id, user_id=user_id)
        self._additions[uuid] = addition
        try:
            return remote.claim(uuid, allocations, project_id=project_id, user_id=user_id)
        except Conflict:
            # While nothing is claimed, nothing can be taken back.
            self._additions[uuid] = msgspec.structs.replace(addition, before=allocations)
        known = remote.allocations_of(uuid)
        after = {**allocations, **known.allocations}
        if after == known.allocations:
            return True
        self._additions[uuid] = msgspec.structs.replace(addition, before=known.allocations, after=after)
        return remote.replace(uuid, after, project_id=project_id, user_id=user_id, known=known)

    def _take_back(self, uuid: str, addition: _Addition) -> bool:
        """Restore the allocations before a claim, unless they have changed since.

        Returns:
            Whether to forget the claim.
        """
        if addition.before == addition.after:
            return True
        known = self._remote.allocations_of(uuid)
        if known.allocations != addition.after:
            return True
        if not addition.before:
            self._remote.release(uuid)
            return True
        owner = {"project_id": addition.project_id, "user_id": addition.user_id}
        if self._remote.replace(uuid, addition.before, **owner, known=known):
            return True
        self._refusals[uuid] = count = self._refusals.get(uuid, 0) + 1
        if count <= _REFUSALS_MAX:
            return False
        log.event("claim_kept", consumer=uuid)
        return True
