"""A request on its way to a decision, and what of it is committed."""

from dataclasses import dataclass, field

from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict
from roost.model.evidence.decision import Decision
from roost.model.fleet import NamedRequest
from roost.model.names import uuid_bytes
from roost.model.request import Request
from roost.model.work.work_rows import Put
from roost.model.writes import EvidenceRow, Item, Write
from roost.ports import Random


@dataclass(slots=True, kw_only=True)
class PendingRequest:
    """A request on its way to a decision."""

    at: int  # its place among the acts
    request: Request
    uuid: bytes | None = None  # of its decision; None: it is made up
    work: tuple[Put, ...] = ()  # committed with the decision, whatever it is
    lost: list[str] = field(default_factory=list)  # hosts lost to other processes
    races: int = 0  # lost to them; a request for many instances may lose several hosts in one
    place: int = -1  # of its item in the next commit; -1: a refusal that is not sure yet
    decision: Decision | None = None
    evidence: EvidenceRow | None = None


def to_pending(at: int, act: Request | NamedRequest) -> PendingRequest:
    """Return an act as what is on its way to a decision."""
    if isinstance(act, Request):
        return PendingRequest(at=at, request=act)
    uuid = uuid_bytes(act.decision_uuid)
    assert uuid is not None, act.decision_uuid
    return PendingRequest(at=at, request=act.request, uuid=uuid, work=act.work)


def choose_uuids(pending: PendingRequest, state: State, random: Random) -> tuple[bytes, list[bytes]]:
    """Return the uuid of the decision and those of the instances: as the request names them, or new ones.

    Raises:
        BadRequest: one is not a valid UUID.
        Conflict: an instance exists already.
    """
    request = pending.request
    if not request.instance_uuids:
        number, *new_uuids = random.uuids(1 + request.count)
        return pending.uuid or number, new_uuids
    bodies: dict[bytes, None] = {}
    for text in request.instance_uuids:
        body = uuid_bytes(text)
        if body is None:
            raise BadRequest(f"the instance {text!r} is no uuid")
        if (body in state.holders and request.move is None) or body in bodies:
            raise Conflict(f"the instance {text} exists already")
        bodies[body] = None
    return pending.uuid or random.uuids(1)[0], list(bodies)


def build_item(pending: PendingRequest, writes: tuple[Write, ...]) -> Item:
    """Return what is committed of a request that was decided.

    Args:
        writes: the claim, and before it the release of who moves; none of a refusal.
    """
    assert pending.evidence is not None, "whatever is committed has its evidence"
    return Item(writes=writes, evidence=(pending.evidence,), work=pending.work)
