"""Lists of stored decisions: all, by uuid, of an instance; and the summary of refusals."""

from collections.abc import Callable, Iterator
from operator import itemgetter

import msgspec

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.handlers.instances import claim_of, host_of
from roost.api.v1.schemas.decisions import DecisionsPage, DecisionsQuery, RefusalsQuery, show_decision
from roost.api.v1.wire.decode_body import field_problem
from roost.errors import report_corruption
from roost.model.evidence.decision import Decision
from roost.model.names import uuid_bytes, uuid_range, uuid_text
from roost.model.stored_decision import DecisionQuery
from roost.model.work.work_rows import OperationRow

# Ids of a page are below its cursor; this is the cursor of the first page.
_ABOVE_ALL = 2**63 - 1
# Operations of an instance, newest first, whose decisions are listed.
_OPERATIONS_MAX = 200
# Decisions to search for those of an instance that Roost does not run, newest first, and decisions per query.
_SCAN_MAX = 2_000
_CHUNK = 200


class _StoredDecision(msgspec.Struct, frozen=True):
    """The common field of stored operations that request a decision."""

    decision_uuid: str = ""


def is_long(query: object) -> bool:
    """Return whether a list can read many decisions that it does not show."""
    assert isinstance(query, DecisionsQuery)
    return bool(query.host or query.reason or query.instance)


def list_decisions(call: Call) -> Response:
    """List stored decisions, newest first.

    Clients without policy roost:all_projects see only decisions of their own project. Fails with 400 for a ``uuid``
    that is not the beginning of a uuid, or an ``instance`` that is not a uuid.
    """
    call.require_thread()
    query = call.query
    assert isinstance(query, DecisionsQuery)
    project = call.project
    if project is not None and query.project not in {None, project}:
        return json_response(DecisionsPage(decisions=[], next=None))
    filters = _filters(query, project)
    matches = _decisions_of(call, query.instance, filters) if query.instance else call.product.find_decisions(filters)
    page = matches[: query.limit]
    following = str(page[-1][0]) if len(matches) > len(page) else None
    return json_response(DecisionsPage(decisions=[show_decision(each) for _, each in page], next=following))


def summarise_refusals(call: Call) -> Response:
    """Count refusals since a moment, by reason and by request, most frequent first.

    Reads the newest 200,000 refusals at most.
    """
    query = call.query
    assert isinstance(query, RefusalsQuery)
    return json_response(call.product.summary(since_s=query.since))


def _filters(query: DecisionsQuery, project: str | None) -> DecisionQuery:
    uuids = None
    if query.uuid:
        uuids = uuid_range(query.uuid)
        if uuids is None:
            raise field_problem("?uuid", f"{query.uuid[:70]!r} is not the beginning of a uuid")
    return DecisionQuery(
        host=query.host,
        project_id=query.project if project is None else project,
        outcome="" if query.refused is None else "refused" if query.refused else "granted",
        reason=query.reason,
        since_s=query.since,
        before=_ABOVE_ALL if query.cursor is None else query.cursor,
        newest=query.limit + 1,
        uuids=uuids,
    )


def _decisions_of(call: Call, instance: str, filters: DecisionQuery) -> list[tuple[int, Decision]]:
    """Return the decisions of an instance that match a query, with their numbers, highest first.

    The decisions of an instance that Roost runs are those of its operations. For other instances, those for the current
    host of their claim are searched, and refusals.
    """
    uuid = uuid_bytes(instance)
    if uuid is None:
        raise field_problem("?instance", f"{instance[:70]!r} is not a valid UUID")
    reader = call.agents.reader(call.current)
    status = reader.status(uuid)
    if status is None:
        found = [*_decisions_of_claim(call, uuid, filters), *_refusals_of(call, uuid, filters)]
        return sorted(found, key=itemgetter(0), reverse=True)[: filters.newest]
    if not call.can_see(status.project_id):
        return []
    uuids = {status.decision_uuid} if status.decision_uuid else set()
    operations = reader.operations_on(uuid, newest=_OPERATIONS_MAX)
    parents = reader.operations_by_id([each.parent_id for each in operations if each.kind == "spawn"])
    uuids.update(filter(None, map(_decision_uuid, [*operations, *parents])))
    found = []
    for each in uuids:
        if filters.uuids is None or filters.uuids[0] <= each <= filters.uuids[1]:
            call.request.check_active()  # Each is a query of its own.
            found += call.product.find_decisions(msgspec.structs.replace(filters, uuids=(each, each)))
    return sorted(found, key=itemgetter(0), reverse=True)


def _decision_uuid(row: OperationRow) -> bytes | None:
    with report_corruption(f"operation {row.id}"):
        text = msgspec.msgpack.decode(row.body, type=_StoredDecision).decision_uuid if row.body else ""
    return uuid_bytes(text)


def _decisions_of_claim(call: Call, uuid: bytes, filters: DecisionQuery) -> Iterator[tuple[int, Decision]]:
    """Search the newest decisions for the host of a claim."""
    holder = claim_of(call, uuid)
    if holder is None:
        return
    host, instance = host_of(call.current.state, holder), uuid_text(uuid)
    query = msgspec.structs.replace(filters, host=filters.host or host)
    yield from _search(call, query, lambda decision: any(pick.instance_uuid == instance for pick in decision.picks))


def _refusals_of(call: Call, uuid: bytes, filters: DecisionQuery) -> Iterator[tuple[int, Decision]]:
    """Search the newest refusals for those of an instance."""
    if filters.outcome == "granted" or filters.host:
        return
    instance, query = uuid_text(uuid), msgspec.structs.replace(filters, outcome="refused")
    yield from _search(call, query, lambda decision: instance in decision.instance_uuids)


def _search(call: Call, filters: DecisionQuery, matches: Callable[[Decision], bool]) -> Iterator[tuple[int, Decision]]:
    wanted, query = filters.newest, msgspec.structs.replace(filters, newest=_CHUNK)
    for _ in range(_SCAN_MAX // _CHUNK):
        chunk = call.product.find_decisions(query)
        for number, decision in call.request.while_active(chunk):
            if wanted and matches(decision):
                wanted -= 1
                yield number, decision
        if len(chunk) < _CHUNK or not wanted:
            return
        query = msgspec.structs.replace(query, before=chunk[-1][0])
