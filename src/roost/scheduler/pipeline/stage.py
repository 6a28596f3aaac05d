"""A request on its way to a decision, and its part of a commit."""

from dataclasses import dataclass, field

import msgspec

from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict
from roost.model.evidence.decision import Decision
from roost.model.evidence.fleet_part import FleetPart
from roost.model.fleet import Departure, NamedRequest
from roost.model.names import uuid_bytes
from roost.model.request import Request
from roost.model.stored_decision import REMOTE, pack, pack_checks, pack_processes
from roost.model.work.work_rows import ChangeRow, Put
from roost.model.writes import EvidenceRow, Item, Write
from roost.ports import Documents, Placement, Random
from roost.scheduler.shape.shape import Shape

# Characters of a detail in a record of a change.
_TEXT_MAX = 300
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True, kw_only=True)
class PendingRequest:
    """A request on its way to a decision."""

    at: int  # its position among the requests and departures
    request: Request
    uuid: bytes | None = None  # of its decision; None: generate one
    work: tuple[Put, ...] = ()  # committed with the decision, granted or refused
    change: ChangeRow | None = None  # the record of the client
    lost: list[str] = field(default_factory=list)  # hosts lost to other processes
    races: int = 0  # number of lost races; one race may lose several hosts
    item_position: int = -1  # position of its item in the next commit; -1: an unconfirmed refusal, without an item
    decision: Decision | None = None
    evidence: EvidenceRow | None = None
    processes_id: int = 0  # document of the processes in the decision's part of the fleet; 0: it has no part


def to_pending(at: int, act: Request | NamedRequest) -> PendingRequest:
    """Wrap a request as a pending one."""
    if isinstance(act, Request):
        return PendingRequest(at=at, request=act)
    uuid = uuid_bytes(act.decision_uuid) if act.decision_uuid else None
    assert uuid is not None or not act.decision_uuid, act.decision_uuid
    return PendingRequest(at=at, request=act.request, uuid=uuid, work=act.work, change=act.change)


def is_new_decision(act: Request | NamedRequest | Departure) -> bool:
    """Return whether an act requests a decision without a uuid, and without work in its commit."""
    return isinstance(act, Request) or (isinstance(act, NamedRequest) and not act.decision_uuid and not act.work)


def choose_uuids(pending: PendingRequest, state: State, random: Random) -> tuple[bytes, list[bytes]]:
    """Return the uuids of the decision and its instances: those of the request, or new ones.

    Raises:
        BadRequest: the uuid of an instance is invalid.
        Conflict: an instance exists already.
    """
    request = pending.request
    if not request.instance_uuids:
        number, *new_uuids = random.uuids(1 + request.count)
        return pending.uuid or number, new_uuids
    uuids: dict[bytes, None] = {}
    for text in request.instance_uuids:
        uuid = uuid_bytes(text)
        if uuid is None:
            raise BadRequest(f"the instance {text!r} is not a valid UUID")
        if (uuid in state.holders and request.move is None) or uuid in uuids:
            raise Conflict(f"the instance {text} exists already", problem_type="already-exists")
        uuids[uuid] = None
    return pending.uuid or random.uuids(1)[0], list(uuids)


def store_documents(
    documents: Documents, shape: Shape, request: Request, *, settings_body: bytes, part: FleetPart | None = None
) -> None:
    """Store the documents that all decisions of a shape refer to."""
    store = documents.document
    shape.flavor_id = store("flavor", msgspec.json.encode(request.flavor))
    shape.image_id = 0 if request.image is None else store("image", msgspec.json.encode(request.image))
    shape.request_id = store("request", shape.spec.request.body())
    shape.checks_id = store("checks", pack_checks(shape.evidence.checks))
    shape.settings_id = store("settings", settings_body)
    shape.processes_id = 0 if part is None else store("processes", pack_processes(part))


def build_evidence(pending: PendingRequest, placement: Placement, *, checks_id: int, is_remote: bool) -> EvidenceRow:
    """Return the row of a decision.

    Args:
        pending: the decided request.
        placement: the columns at the decision.
        checks_id: document of the checks.
        is_remote: whether a remote Placement has the inventories.
    """
    decision = pending.decision
    assert decision is not None, "the request is decided"
    seen = REMOTE if is_remote else placement.visible_changes
    body = pack(decision, checks_id=checks_id, ahead=placement.ahead, seen=seen, processes_id=pending.processes_id)
    return EvidenceRow(
        placement.new_id("decision"),
        uuid_bytes(decision.uuid) or b"",
        decision.decided_at_s,
        decision.outcome,
        decision.project_id,
        decision.settings_id,
        " ".join(decision.hosts)[:255],
        decision.reason,
        body,
    )


def build_item(pending: PendingRequest, writes: tuple[Write, ...]) -> Item:
    """Return the commit item of a decided request.

    Args:
        pending: the request.
        writes: the claim, after the release of a moving instance; none for a refusal.
    """
    assert pending.evidence is not None, "a decision has evidence"
    return Item(writes=writes, evidence=(pending.evidence,), work=pending.work, trail=trail_of(pending))


def trail_of(pending: PendingRequest) -> tuple[ChangeRow, ...]:
    """Return the record of the client of a decision, with the uuid and the outcome of the decision."""
    if pending.change is None or pending.decision is None:
        return ()
    decision = pending.decision
    details = {"outcome": decision.outcome, "hosts": ", ".join(decision.hosts), "reason": decision.reason}
    body = _encode({name: text[:_TEXT_MAX] for name, text in details.items() if text})
    return (msgspec.structs.replace(pending.change, object=decision.uuid, body=body),)
