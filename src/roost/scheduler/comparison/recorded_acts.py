"""The recorded acts since a decision: the newest requests, and the departures of instances between them."""

from collections.abc import Iterator, Sequence

import msgspec

from roost.engine.columns.state import State
from roost.errors import NotFound, StateLost
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure
from roost.model.names import uuid_bytes, uuid_text
from roost.model.request import Request
from roost.model.stored_decision import DecisionQuery, Moment, moment_of
from roost.model.writes import Claim, Release, Write
from roost.ports import FeedMark, Store
from roost.scheduler.explain import decision_rows
from roost.scheduler.explain.decision_replay import request_of


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a stored decision."""

    decision: Decision
    request: Request
    moment: Moment


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The newest stored decisions, oldest first."""

    requests: list[RecordedRequest]
    moves: int  # decisions about moves of instances; they are left out
    lost: int  # decisions without a readable request


def read_record(store: Store, *, newest: int, since_s: float = 0.0) -> Record:
    """Read the newest stored decisions.

    A move depends on the place of its instance, so decisions about moves are left out.

    Args:
        newest: maximum number of decisions, >= 1.
        since_s: only decisions since then, in seconds since the epoch.
    """
    requests, moves, lost = [], 0, 0
    for row in reversed(store.decisions(DecisionQuery(newest=newest, since_s=since_s))):
        try:
            decision = decision_rows.unpack_row(row, store)
            request = request_of(decision, store)
        except (StateLost, NotFound):
            lost += 1
            continue
        if request.move is None:
            requests.append(RecordedRequest(decision=decision, request=request, moment=moment_of(row)))
        else:
            moves += 1
    return Record(requests=requests, moves=moves, lost=lost)


def order_acts(
    requests: Sequence[RecordedRequest], state: State, store: Store
) -> Iterator[RecordedRequest | Departure] | None:
    """Return recorded requests and the departures between them, in the order of their commits.

    Args:
        requests: one or more, oldest first.
        state: the columns before the first of them.

    Returns:
        The acts; None: the changes between the requests were pruned.
    """
    first, last = requests[0].moment, requests[-1].moment
    past = store.past(last.position, last.seen, after=FeedMark(first.position, first.seen))
    if past is None:
        return None
    writes = [write for write in past.writes if isinstance(write, Claim | Release)]
    begin_of = {(first.position, first.seen): 0} if past.is_after else {}
    begin_of[last.position, last.seen] = len(writes)
    # The last request saw the first writes of its own group.
    writes += [write for write in past.own if isinstance(write, Claim | Release)][: max(0, last.ahead)]
    return _merge(requests, state, writes, places=_find_places(requests, writes, begin_of))


def _merge(
    requests: Sequence[RecordedRequest], state: State, writes: Sequence[Write], *, places: Sequence[int]
) -> Iterator[RecordedRequest | Departure]:
    claimed_at: dict[bytes, int] = {}  # the last claim of each consumer
    uuid_of = {number: holder.uuid for number, holder in state.holders_by_id.items()}
    for at, write in enumerate(writes):
        if isinstance(write, Claim):
            claimed_at |= {consumer.uuid: at for consumer in write.consumers}
            uuid_of |= {consumer.id: consumer.uuid for consumer in write.consumers}
    done = 0
    for at, write in enumerate(writes):
        while done < len(requests) and places[done] <= at:
            yield requests[done]
            done += 1
        if isinstance(write, Release):
            # Consumers with a later claim have moved or changed their allocations.
            gone = [uuid_of[each] for each in write.consumer_ids if each in uuid_of]
            left = tuple(uuid_text(uuid) for uuid in gone if claimed_at.get(uuid, -1) < at)
            if left:
                yield Departure(instance_uuids=left)
    yield from requests[done:]


def _find_places(
    requests: Sequence[RecordedRequest], writes: Sequence[Write], begin_of: dict[tuple[int, str], int]
) -> list[int]:
    """Return the index of the first write after each request.

    A granted request has a claim. A refusal has a place in its group commit, if the begin of the group is known; else
    it comes right before the next request with a place.

    Args:
        begin_of: index of the first write of a group, by the position and the visible changes of its moment.
    """
    claims = {write.consumers[0].uuid: at for at, write in enumerate(writes) if isinstance(write, Claim)}
    places: list[int | None] = []
    for each in requests:
        first = each.decision.picks[0].instance_uuid if each.decision.picks else ""
        place = claims.get(uuid_bytes(first) or b"")
        places.append(place)
        if place is not None:
            begin_of[each.moment.position, each.moment.seen] = place - each.moment.ahead
    found, following = [0] * len(requests), len(writes)
    for number in reversed(range(len(requests))):
        moment, place = requests[number].moment, places[number]
        begin = begin_of.get((moment.position, moment.seen))
        if place is None and begin is not None:
            place = begin + moment.ahead
        following = min(following, following if place is None else place)
        found[number] = following
    return found
