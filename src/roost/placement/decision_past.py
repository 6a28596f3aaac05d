"""The columns before a decision: the feed up to its position, and the earlier items of its group."""

import msgspec

from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.state import State
from roost.errors import StateLost
from roost.model.evidence.decision import Decision
from roost.model.names import uuid_bytes
from roost.model.stored_decision import REMOTE, UNKNOWN, Moment
from roost.model.writes import Claim, Release, Write
from roost.placement.current import is_rising
from roost.placement.past_base import PastBase
from roost.ports import Past, Store


def rebuild_state(store: Store, decision: Decision, moment: Moment, *, base: PastBase | None = None) -> State:
    """Return the columns as they were before a stored decision.

    Args:
        base: older columns to begin with, which are lost if they are used; None: begin with a snapshot.

    Raises:
        StateLost: they were deleted, or the stored data does not define them exactly.
    """
    if moment.ahead == UNKNOWN:
        raise StateLost(decision.uuid, "it was stored by an older version, which did not record its feed position")
    if moment.seen == REMOTE:
        raise StateLost(decision.uuid, "it was decided on the answer of a remote Placement, which is not stored")
    try:
        past = store.past(moment.position, moment.seen, after=None if base is None else base.mark)
        if past is None:
            raise StateLost(decision.uuid, "the state that it saw is no longer kept")
        state = base.take() if base is not None and past.is_after else State()
        for write in past.writes:
            apply(state, write)
        if not (is_rising(state.providers.ids) and is_rising(state.hosts.ids)):
            raise StateLost(decision.uuid, "hosts were created in an order that is not stored")
        for write in _before(past, decision, moment):
            apply(state, write)
        recount_hosts(state)
    except (msgspec.MsgspecError, KeyError, ValueError) as error:
        raise StateLost(decision.uuid, f"the stored state cannot be decoded: {error!r}") from error
    state.position = moment.position
    return state


def _before(past: Past, decision: Decision, moment: Moment) -> list[Write]:
    """Return the writes of the earlier items in the decision's group. They precede the decision's claim in the feed.

    A claim of the group that lost a race was in the columns, but is not in the feed. Then fewer writes precede the
    decision's claim, and the columns cannot be rebuilt.
    """
    if not moment.ahead:
        return []
    count = moment.ahead
    own = [write for write in past.own if isinstance(write, Claim | Release)]
    claim = own[count] if len(own) > count else None
    # A refusal is stored only after all claims before it are durable.
    is_whole = len(own) >= count
    if decision.is_granted:
        first = uuid_bytes(decision.picks[0].instance_uuid)
        is_whole = isinstance(claim, Claim) and claim.consumers[0].uuid == first
    if not is_whole:
        raise StateLost(decision.uuid, "it saw claims that then lost a race against another process")
    return list(own[:count])
