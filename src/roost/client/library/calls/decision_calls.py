"""Calls about decisions, capacity and plans."""

from collections.abc import Sequence

import msgspec

from roost.api.v1.schemas.capacity import CapacityBody, CapacityQuery
from roost.api.v1.schemas.decisions import (
    DecisionBatch,
    DecisionBody,
    DecisionsPage,
    DecisionsQuery,
    ExplanationBody,
    InstanceRequestBody,
    NextBody,
    NextStep,
    RefusalsQuery,
    ShownDecision,
    ShownWhy,
    WhyQuery,
)
from roost.api.v1.schemas.instances import OperationReference
from roost.api.v1.schemas.plans import (
    ApplyBody,
    BalanceBody,
    ConsolidationBody,
    HostsDrainBody,
    RehearsedPlan,
    RoomBody,
)
from roost.client.library.exchange import Answer, Call, answer_reader, encode_body, fields_to_send, path_of
from roost.model.evidence.capacity import Capacity
from roost.model.evidence.move_plans import BalancePlan, ConsolidationPlan, DrainMoves, RoomPlan
from roost.model.evidence.summary import Summary


def decide(body: DecisionBody, *, key: str) -> Call[ShownDecision]:
    """Choose hosts and claim their resources; in a dry run, only choose."""
    return Call(
        method="POST",
        path=path_of("decisions"),
        body=encode_body(body),
        key="" if body.dry_run else key,
        read=answer_reader(ShownDecision),
    )


def decide_batch(bodies: Sequence[InstanceRequestBody], *, keys: Sequence[str]) -> Call[DecisionBatch]:
    """Decide several independent requests; each has a key of its own."""
    entries = [
        {"request": fields_to_send(body), "idempotency_key": key} for body, key in zip(bodies, keys, strict=True)
    ]
    body = msgspec.json.encode({"requests": entries})
    return Call(method="POST", path=path_of("decisions", "batch"), body=body, read=answer_reader(DecisionBatch))


def show(uuid: str) -> Call[ShownDecision]:
    """Show a stored decision."""
    return Call(method="GET", path=path_of("decisions", uuid), read=answer_reader(ShownDecision))


def list_page(query: DecisionsQuery) -> Call[DecisionsPage]:
    """List a page of decisions."""
    return Call(method="GET", path=path_of("decisions", query=query), read=answer_reader(DecisionsPage))


def advance(uuid: str, body: NextBody, *, key: str) -> Call[NextStep]:
    """Move a claim to the next alternate."""
    path = path_of("decisions", uuid, "next")
    return Call(method="POST", path=path, body=encode_body(body), key=key, read=answer_reader(NextStep))


def why(uuid: str, query: WhyQuery) -> Call[ShownWhy]:
    """Explain a stored decision."""
    return Call(method="GET", path=path_of("decisions", uuid, "why", query=query), read=answer_reader(ShownWhy))


def explain(body: ExplanationBody) -> Call[ShownWhy]:
    """Explain what a request would get now."""
    path = path_of("explanations")
    return Call(method="POST", path=path, body=encode_body(body), read=answer_reader(ShownWhy))


def count_refusals(query: RefusalsQuery) -> Call[Summary]:
    """Count refusals by reason and by request."""
    return Call(method="GET", path=path_of("refusals", query=query), read=answer_reader(Summary))


def count_capacity(query: CapacityQuery) -> Call[Capacity]:
    """Count how many more instances of a flavor fit."""
    return Call(method="GET", path=path_of("capacity", query=query), read=answer_reader(Capacity))


def count_capacity_of_request(body: CapacityBody) -> Call[Capacity]:
    """Count how many more instances of a request fit, also on a changed fleet."""
    return Call(method="POST", path=path_of("capacity"), body=encode_body(body), read=answer_reader(Capacity))


def plan_room(body: RoomBody) -> Call[RoomPlan]:
    """Plan moves to make room for a request."""
    path = path_of("plans", "make-room")
    return Call(method="POST", path=path, body=encode_body(body), read=answer_reader(RoomPlan))


def plan_consolidation(body: ConsolidationBody) -> Call[ConsolidationPlan]:
    """Plan moves to empty hosts."""
    path = path_of("plans", "consolidate")
    return Call(method="POST", path=path, body=encode_body(body), read=answer_reader(ConsolidationPlan))


def plan_drain(body: HostsDrainBody) -> Call[DrainMoves]:
    """Plan moves to empty given hosts."""
    path = path_of("plans", "drain")
    return Call(method="POST", path=path, body=encode_body(body), read=answer_reader(DrainMoves))


def plan_balance(body: BalanceBody) -> Call[BalancePlan]:
    """Plan moves to make hosts equally full."""
    path = path_of("plans", "balance")
    return Call(method="POST", path=path, body=encode_body(body), read=answer_reader(BalancePlan))


def apply_plan(body: ApplyBody, *, key: str) -> Call[RehearsedPlan | OperationReference]:
    """Make the moves of a plan, or rehearse them."""
    rehearsed, accepted = answer_reader(RehearsedPlan), answer_reader(OperationReference)

    def read(answer: Answer) -> RehearsedPlan | OperationReference:
        return accepted(answer) if answer.status == 202 else rehearsed(answer)

    path = path_of("plans", "apply")
    return Call(method="POST", path=path, body=encode_body(body), key="" if body.dry_run else key, read=read)
