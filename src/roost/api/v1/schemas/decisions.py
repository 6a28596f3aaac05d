"""Decisions as the API reads and writes them."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from roost.model.documents.request_document import FlavorEntry, ImageEntry, RequestDocument
from roost.model.evidence.decision import Contribution, Decision, Limits, Pick
from roost.model.evidence.explain import Explanation
from roost.model.evidence.replay_result import HostDifference, Replayed
from roost.model.request import Request

_Image = Annotated[
    ImageEntry | str | None, Meta(description="What the instances boot from, or the name of a stored image.")
]


class InstanceRequestBody(RequestDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for equal instances, whose flavor and image may be named."""

    flavor: Annotated[  # type: ignore[assignment]  # what is sent may name it
        FlavorEntry | str,
        Meta(
            description="The size of the instances, or the name of a flavor: stored, or that decisions were made for."
        ),
    ]
    image: _Image = None  # type: ignore[assignment]  # likewise


class DecisionBody(InstanceRequestBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for equal instances, to be decided."""

    dry_run: Annotated[
        bool, Meta(description="Whether to say only what would be decided: nothing is claimed or stored.")
    ] = False


class ShownPick(msgspec.Struct, frozen=True, kw_only=True):
    """A host for one instance."""

    host: Annotated[str, Meta(description="Name of the service.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    cell: Annotated[str, Meta(description="Its cell.")]
    instance_uuid: Annotated[str | None, Meta(description="The instance; null in an alternate.")]
    allocations: Annotated[
        dict[str, dict[str, int]], Meta(description="By uuid of the provider: the amount of each resource class.")
    ]
    limits: Annotated[
        Limits, Meta(description="What the host may have in use, by Nova's names of limits, as filters say.")
    ]
    mappings: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="By suffix of the resource group its providers, where Placement is asked for PCI devices."),
    ]


class ShownStage(msgspec.Struct, frozen=True, kw_only=True):
    """One rule's verdict."""

    rule: Annotated[str, Meta(description="search, requested_hosts, or the name of a filter.")]
    reason: Annotated[str, Meta(description="What the hosts it refuses lack, without a subject.")]
    before: Annotated[int, Meta(description="Hosts that it judged.")]
    after: Annotated[int, Meta(description="Hosts that it kept.")]


class ShownScore(msgspec.Struct, frozen=True, kw_only=True):
    """One of the best hosts."""

    host: Annotated[str, Meta(description="Name of the node.")]
    total: Annotated[float, Meta(description="The sum of the contributions.")]
    weights: Annotated[list[Contribution], Meta(description="One a weigher that had a say.")]


class ShownDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and what led to it."""

    uuid: Annotated[str, Meta(description="Its uuid.")]
    decided_at_s: Annotated[float, Meta(description="The moment, in seconds since the epoch.")]
    outcome: Annotated[Literal["granted", "refused"], Meta(description="For all instances, or for none.")]
    reason: Annotated[str, Meta(description="Of a refusal, in one line; else empty.")]
    dry_run: Annotated[bool, Meta(description="Whether nothing was claimed, and nothing stored.")]
    count: Annotated[int, Meta(description="Instances asked for.")]
    found: Annotated[int, Meta(description="Instances that had a host when the answer was clear.")]
    picks: Annotated[list[ShownPick], Meta(description="One an instance; none when refused.")]
    alternates: Annotated[
        dict[str, list[ShownPick]], Meta(description="By cell of a chosen host: hosts to try next, best first.")
    ]
    stages: Annotated[
        list[ShownStage],
        Meta(description="In order; of the first instance, or when refused of the one that found no host."),
    ]
    scores: Annotated[list[ShownScore], Meta(description="The best hosts for the first instance, best first.")]
    warnings: Annotated[list[str], Meta(description="What was passed over in the request, one sentence each.")]
    conflicts: Annotated[list[str], Meta(description="Hosts lost to concurrent writers.")]
    seed: Annotated[int, Meta(description="Of the draw among the best hosts, where settings ask for one.")]
    position: Annotated[int, Meta(description="Of the newest change that it saw.")]


class DecisionsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which decisions are shown."""

    host: Annotated[str, Meta(description="Only those that chose this service.")] = ""
    project: Annotated[str | None, Meta(description="Only those of this project.")] = None
    refused: Annotated[bool | None, Meta(description="Only refusals, or only what was granted.")] = None
    reason: Annotated[str, Meta(description="Only refusals whose reason holds this text.")] = ""
    since: Annotated[float, Meta(description="Only from this moment on, in seconds since the epoch.")] = 0.0
    limit: Annotated[Annotated[int, Meta(ge=1, le=200)], Meta(description="So many at most.")] = 20
    cursor: Annotated[Annotated[int, Meta(ge=0, le=2**63 - 1)] | None, Meta(description="next of the page before.")] = (
        None
    )


class DecisionsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions, newest first."""

    decisions: list[ShownDecision]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null: this is the last one.")]


class NextBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which instance goes on to its next alternate."""

    instance_uuid: Annotated[str | None, Meta(description="The instance; of a decision for one it goes unsaid.")] = None
    from_host: Annotated[
        str | None, Meta(description="The service that it leaves: if it is on another one already, nothing happens.")
    ] = None


class NextStep(msgspec.Struct, frozen=True, kw_only=True):
    """Where an instance went."""

    pick: Annotated[ShownPick, Meta(description="Its host from now on.")]
    left: Annotated[int, Meta(description="Alternates after this one.")]


class ReplayBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Under which settings a decision is made again."""

    under: Annotated[
        Literal["stored", "current"], Meta(description="The settings it was made under, or those in force.")
    ] = "stored"
    settings: Annotated[
        dict[str, dict[str, Any]] | None,
        Meta(description="Or these: sections of a settings file, in place of those in force."),
    ] = None


class ShownReplay(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as it was stored and as it comes out now, from what it saw."""

    is_same: Annotated[bool, Meta(description="In everything but durations.")]
    fields: Annotated[list[str], Meta(description="What differs.")]
    differences: Annotated[list[HostDifference], Meta(description="Hosts that are treated otherwise.")]
    stored: ShownDecision
    again: ShownDecision


class ShownWhy(msgspec.Struct, frozen=True, kw_only=True):
    """A stored decision, explained as of the moment at which it was made."""

    decision: ShownDecision
    request: Annotated[Request, Meta(description="What was asked.")]
    explanation: Annotated[Explanation | None, Meta(description="null: what the decision saw is no longer kept.")]
    note: Annotated[str, Meta(description="Why there is no explanation.")]


def show_pick(pick: Pick) -> ShownPick:
    """Return a pick as it is shown."""
    return ShownPick(
        host=pick.host,
        node=pick.node,
        cell=pick.cell,
        instance_uuid=pick.instance_uuid or None,
        allocations=pick.allocations,
        limits=pick.limits,
        mappings=pick.mappings,
    )


def show_decision(decision: Decision, *, dry_run: bool = False) -> ShownDecision:
    """Return a decision as it is shown."""
    table = decision.table()
    return ShownDecision(
        uuid=decision.uuid,
        decided_at_s=decision.decided_at_s,
        outcome=decision.outcome,
        reason=decision.reason,
        dry_run=dry_run,
        count=decision.count,
        found=decision.found,
        picks=[show_pick(pick) for pick in decision.picks],
        alternates={cell: [show_pick(pick) for pick in picks] for cell, picks in decision.alternates.items()},
        stages=[
            ShownStage(rule=each.rule, reason=each.reason, before=each.before, after=each.after)
            for each in decision.stages
        ],
        scores=[ShownScore(host=each.host, total=each.total, weights=table[each.host]) for each in decision.best],
        warnings=decision.warnings,
        conflicts=decision.conflicts,
        seed=decision.seed,
        position=decision.position,
    )


def show_replay(found: Replayed) -> ShownReplay:
    """Return a replay as it is shown."""
    return ShownReplay(
        is_same=found.is_same,
        fields=found.fields,
        differences=found.differences,
        stored=show_decision(found.stored),
        again=show_decision(found.again),
    )
