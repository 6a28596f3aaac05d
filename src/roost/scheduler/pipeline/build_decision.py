"""The decision about a request, from the choice of its hosts."""

from roost.model.evidence.decision import Decision
from roost.model.evidence.fleet_part import FleetPart
from roost.model.names import uuid_text
from roost.scheduler.pipeline.choice import Choice
from roost.scheduler.pipeline.stage import PendingRequest
from roost.scheduler.shape.shape import Shape


def build_decision(
    pending: PendingRequest,
    shape: Shape,
    choice: Choice,
    *,
    number: bytes,
    position: int,
    now_s: float,
    seed: int,
    search_s: float,
    rank_s: float,
    part: FleetPart | None = None,
) -> Decision:
    """Return the decision, granted or refused.

    Args:
        number: its uuid, 16 bytes.
        position: feed position of the columns.
        now_s: seconds since the epoch.
        seed: of the draws among the best hosts.
        search_s, rank_s: seconds until the compiled request, and until the choice.
        part: the part of the process, if it preferred its own hosts.
    """
    is_granted, request = not choice.is_refused, pending.request
    found = len(choice.picks)
    return Decision(
        uuid=uuid_text(number),
        decided_at_s=now_s,
        outcome="granted" if is_granted else "refused",
        request_id=shape.request_id,
        count=request.count,
        picks=choice.picks if is_granted else [],
        alternates=choice.alternates,
        stages=choice.stages,
        scales=choice.scales,
        best=choice.best,
        reason="" if is_granted else shape.evidence.reason(choice.stages, found=found, requested=request.count),
        warnings=[*shape.warnings, *choice.faults],
        found=found,
        conflicts=pending.lost,
        position=position,
        seed=seed,
        settings_id=shape.settings_id,
        search_s=search_s,
        rank_s=rank_s,
        project_id=request.project_id,
        user_id=request.user_id,
        instance_uuids=[] if is_granted else list(request.instance_uuids),
        part=part,
    )
