"""Decisions in requests and answers."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from roost.api.v1.wire.problem_details import ProblemDetails
from roost.model.documents.request_body import request_body
from roost.model.documents.request_document import FlavorEntry, ImageEntry, RequestDocument
from roost.model.evidence.capacity import AddedHosts, FleetChange
from roost.model.evidence.decision import Contribution, Decision, Limits, Pick
from roost.model.evidence.explain import Explanation, Why
from roost.model.evidence.replay_result import HostDifference, ReplayResult
from roost.model.request import Request

_SETS_MAX = 4
_NEWEST_MAX = 1_000
_BATCH_MAX = 256
_Image = Annotated[
    ImageEntry | str | None, Meta(description="The image of the instances, or the name of a stored image.")
]


class InstanceRequestBody(RequestDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for identical instances; flavor and image are given in full or by name."""

    flavor: Annotated[  # type: ignore[assignment]  # a client may send a name
        FlavorEntry | str,
        Meta(description="The flavor of the instances, or the name of a stored flavor or one in a stored decision."),
    ]
    image: _Image = None  # type: ignore[assignment]  # likewise
    check_index: Annotated[
        str | None,
        Meta(description="The check_index of a dry run: 409 if the instances would be placed elsewhere by now."),
    ] = None
    strict: Annotated[
        bool, Meta(description="Whether to refuse invalid extra specs and hints without effect, instead of a warning.")
    ] = False


class DecisionBody(InstanceRequestBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for identical instances, to be decided."""

    dry_run: Annotated[bool, Meta(description="Whether to decide without claiming or storing anything.")] = False


class ShownPick(msgspec.Struct, frozen=True, kw_only=True):
    """A host for one instance."""

    host: Annotated[str, Meta(description="Name of the service.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    cell: Annotated[str, Meta(description="Name of the cell.")]
    instance_uuid: Annotated[str | None, Meta(description="Uuid of the instance; null in an alternate.")]
    allocations: Annotated[
        dict[str, dict[str, int]], Meta(description="Amount of each resource class, by provider uuid.")
    ]
    limits: Annotated[Limits, Meta(description="Limits of the filters for the use of the host, under Nova's names.")]
    mappings: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="Provider uuids by suffix of the request group, if PCI devices are in Placement."),
    ]


class ShownStage(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of one rule."""

    rule: Annotated[str, Meta(description="search, requested_hosts, or the name of a filter.")]
    reason: Annotated[str, Meta(description="Shortcoming of the rejected hosts, as a phrase without a subject.")]
    before: Annotated[int, Meta(description="Number of hosts before the rule.")]
    after: Annotated[int, Meta(description="Number of hosts that it accepted.")]


class ShownScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one of the best hosts."""

    host: Annotated[str, Meta(description="Name of the node.")]
    total: Annotated[float, Meta(description="Sum of the contributions.")]
    weights: Annotated[
        list[Contribution], Meta(description="One contribution per weigher that distinguishes the hosts.")
    ]


class ShownPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the fleet that the deciding process preferred."""

    processes: Annotated[int, Meta(description="Number of processes that shared the fleet.")]
    is_within: Annotated[bool, Meta(description="Whether all chosen hosts are in the part of the deciding process.")]


class ShownDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and its evidence."""

    uuid: Annotated[str, Meta(description="Uuid of the decision.")]
    decided_at_s: Annotated[float, Meta(description="Time of the decision, in seconds since the epoch.")]
    outcome: Annotated[Literal["granted", "refused"], Meta(description="All instances got a host, or none did.")]
    reason: Annotated[str, Meta(description="Reason of a refusal, in one line; otherwise empty.")]
    project_id: Annotated[str, Meta(description="Project of the instances; empty: none.")]
    user_id: Annotated[str, Meta(description="User of the request; empty: unknown.")]
    dry_run: Annotated[bool, Meta(description="Whether nothing was claimed or stored.")]
    check_index: Annotated[
        str | None, Meta(description="Of a granted dry run: makes a request depend on the same choice; else null.")
    ]
    count: Annotated[int, Meta(description="Number of requested instances.")]
    found: Annotated[int, Meta(description="Number of instances for which the search found a host.")]
    picks: Annotated[list[ShownPick], Meta(description="One pick per instance; none in a refusal.")]
    alternates: Annotated[
        dict[str, list[ShownPick]], Meta(description="By cell of the chosen hosts: further hosts to try, best first.")
    ]
    stages: Annotated[
        list[ShownStage],
        Meta(description="Stages in order, for the first instance; in a refusal, for the instance without a host."),
    ]
    scores: Annotated[
        list[ShownScore], Meta(description="Scores of the best hosts for the first instance, best first.")
    ]
    warnings: Annotated[list[str], Meta(description="Ignored parts of the request, one sentence each.")]
    conflicts: Annotated[list[str], Meta(description="Hosts lost to concurrent writers.")]
    part: Annotated[
        ShownPart | None,
        Meta(description="Part of the fleet that the deciding process preferred; null: it chose among all hosts."),
    ]
    seed: Annotated[
        int, Meta(description="Seed of the random choice among the best hosts, if the settings enable one.")
    ]
    position: Annotated[int, Meta(description="Feed position of the newest change that the decision includes.")]


class BatchedRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request of a batch."""

    request: Annotated[InstanceRequestBody, Meta(description="The request, as for a single decision.")]
    idempotency_key: Annotated[
        str | None,
        Meta(description="Key of the request, as in the header Idempotency-Key of a single decision; null: none."),
    ] = None


class DecisionBatchBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Independent requests, to be decided in their order."""

    requests: Annotated[
        Annotated[list[BatchedRequest], Meta(min_length=1, max_length=_BATCH_MAX)], Meta(description="The requests.")
    ]


class EncodedRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request of a batch, before its fields are checked."""

    request: msgspec.Raw
    idempotency_key: str | None = None


class EncodedBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch before the fields of its requests are checked: an invalid request does not affect the others."""

    requests: Annotated[list[EncodedRequest], Meta(min_length=1, max_length=_BATCH_MAX)]


class BatchedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one request of a batch."""

    status: Annotated[int, Meta(description="Status of a single decision: 201, or that of its error.")]
    replayed: Annotated[bool, Meta(description="Whether an earlier request with the key was answered so.")]
    decision: Annotated[ShownDecision | None, Meta(description="The decision, granted or refused; null: an error.")]
    problem: Annotated[ProblemDetails | None, Meta(description="The error; null: a decision.")]


class DecisionBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to the requests of a batch."""

    answers: Annotated[list[BatchedAnswer], Meta(description="One answer for each request, in their order.")]


class ExplanationBody(InstanceRequestBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for identical instances, to be explained."""


class DecisionsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of decisions, and their filters."""

    host: Annotated[str, Meta(description="Only decisions that chose this service.")] = ""
    project: Annotated[str | None, Meta(description="Only decisions of this project.")] = None
    refused: Annotated[bool | None, Meta(description="true: only refusals; false: only granted decisions.")] = None
    reason: Annotated[str, Meta(description="Only refusals with this text in their reason.")] = ""
    uuid: Annotated[str, Meta(description="Only decisions whose uuid begins with these hexadecimal digits.")] = ""
    instance: Annotated[str, Meta(description="Only decisions of the instance with this uuid.")] = ""
    since: Annotated[float, Meta(description="Only decisions from this time on, in seconds since the epoch.")] = 0.0
    limit: Annotated[Annotated[int, Meta(ge=1, le=200)], Meta(description="Maximum number of decisions.")] = 20
    cursor: Annotated[
        Annotated[int, Meta(ge=0, le=2**63 - 1)] | None, Meta(description="The value next of the previous page.")
    ] = None


class DecisionsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of decisions, newest first."""

    decisions: list[ShownDecision]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]


class RefusalsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The period of a summary of refusals."""

    since: Annotated[float, Meta(description="Only refusals from this time on, in seconds since the epoch.")] = 0.0


class NextBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The instance that moves to its next alternate."""

    instance_uuid: Annotated[
        str | None, Meta(description="Uuid of the instance; optional if the decision is for one instance.")
    ] = None
    from_host: Annotated[
        str | None, Meta(description="Service to leave; 409 if the instance is on another service already.")
    ] = None


class NextStep(msgspec.Struct, frozen=True, kw_only=True):
    """The next host of an instance."""

    pick: Annotated[ShownPick, Meta(description="The new host.")]
    left: Annotated[int, Meta(description="Number of remaining alternates.")]


class ReplayBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a replay."""

    under: Annotated[
        Literal["stored", "current"],
        Meta(description="stored: the settings of the decision; current: the settings in force."),
    ] = "stored"
    settings: Annotated[
        dict[str, dict[str, Any]] | None,
        Meta(
            description="Sections of a settings file that override the settings in force; with them, under is ignored."
        ),
    ] = None


class FleetChangeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question about a changed fleet."""

    without_zones: Annotated[tuple[str, ...], Meta(description="Leave out the hosts of these availability zones.")] = ()
    without_racks: Annotated[tuple[str, ...], Meta(description="Leave out the hosts of these racks.")] = ()
    without_hosts: Annotated[
        tuple[str, ...], Meta(description="Leave out these hosts, by the names of nodes or services.")
    ] = ()
    add_hosts: Annotated[tuple[AddedHosts, ...], Meta(description="Add these hosts.")] = ()

    @property
    def change(self) -> FleetChange:
        """The change."""
        return FleetChange(
            without_zones=self.without_zones,
            without_racks=self.without_racks,
            without_hosts=self.without_hosts,
            add_hosts=self.add_hosts,
        )


class SettingsSet(FleetChangeBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One set of settings, and a changed fleet to use them on."""

    name: Annotated[Annotated[str, Meta(min_length=1, max_length=60)], Meta(description="Name, unique in the request.")]
    settings: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="Sections of a settings file that override the settings in force; {}: those in force."),
    ] = msgspec.field(default_factory=dict)


class ComparisonBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two to four sets of settings, and the recorded decisions to make again."""

    sets: Annotated[
        Annotated[list[SettingsSet], Meta(min_length=2, max_length=_SETS_MAX)], Meta(description="Sets of settings.")
    ]
    newest: Annotated[
        Annotated[int, Meta(ge=1, le=_NEWEST_MAX)], Meta(description="Number of newest decisions to make again.")
    ] = 200
    hosts: Annotated[bool, Meta(description="Whether to return the shares of single hosts.")] = False


class ShownReplay(msgspec.Struct, frozen=True, kw_only=True):
    """A stored decision, and the result of deciding it again from the same state."""

    is_same: Annotated[bool, Meta(description="Whether both decisions are equal, except for durations.")]
    fields: Annotated[list[str], Meta(description="Names of the fields that differ.")]
    differences: Annotated[list[HostDifference], Meta(description="Hosts with different results.")]
    stored: ShownDecision
    again: ShownDecision


class WhyQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of an explanation."""

    plans: Annotated[
        bool, Meta(description="Whether to look for moves of instances that make room for a refused request now.")
    ] = False


class RoomHint(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that makes room for the request on the present fleet; ``POST /v1/plans/make-room`` has its moves."""

    moves: Annotated[int, Meta(description="Number of moves; 0: the request fits now.")]
    host: Annotated[str, Meta(description="Service for the request after the moves.")]


class ShownWhy(msgspec.Struct, frozen=True, kw_only=True):
    """A stored decision with its explanation, as of the time of the decision."""

    decision: ShownDecision
    request: Annotated[Request, Meta(description="The request of the decision.")]
    explanation: Annotated[
        Explanation | None, Meta(description="Explanation; null: the state of that time is no longer stored.")
    ]
    note: Annotated[str, Meta(description="Reason for a missing explanation.")]
    body: Annotated[
        dict[str, Any], Meta(description="The request as a body for POST /v1/decisions, to decide it again.")
    ]
    change_bodies: Annotated[
        list[dict[str, Any]], Meta(description="The request with each change of the explanation, as such a body.")
    ]
    plan: Annotated[
        RoomHint | None,
        Meta(description="With plans=true: moves of instances that make room now; null: a short search found none."),
    ] = None


def show_pick(pick: Pick) -> ShownPick:
    """Convert a pick for a response."""
    return ShownPick(
        host=pick.host,
        node=pick.node,
        cell=pick.cell,
        instance_uuid=pick.instance_uuid or None,
        allocations=pick.allocations,
        limits=pick.limits,
        mappings=pick.mappings,
    )


def show_decision(decision: Decision, *, dry_run: bool = False, check_index: str | None = None) -> ShownDecision:
    """Convert a decision for a response."""
    table, part = decision.table(), decision.part
    return ShownDecision(
        uuid=decision.uuid,
        decided_at_s=decision.decided_at_s,
        outcome=decision.outcome,
        reason=decision.reason,
        project_id=decision.project_id,
        user_id=decision.user_id,
        dry_run=dry_run,
        check_index=check_index,
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
        part=None if part is None else ShownPart(processes=len(part.processes), is_within=part.is_within),
        seed=decision.seed,
        position=decision.position,
    )


def show_why(
    why: Why, *, dry_run: bool = False, check_index: str | None = None, plan: RoomHint | None = None
) -> ShownWhy:
    """Convert an explained decision for a response."""
    changes = [] if why.explanation is None else why.explanation.changes
    return ShownWhy(
        decision=show_decision(why.decision, dry_run=dry_run, check_index=check_index),
        request=why.request,
        explanation=why.explanation,
        note=why.note,
        body=request_body(why.request),
        change_bodies=[request_body(change.request) for change in changes],
        plan=plan,
    )


def show_replay(replay: ReplayResult) -> ShownReplay:
    """Convert a replay for a response."""
    return ShownReplay(
        is_same=replay.is_same,
        fields=replay.fields,
        differences=replay.differences,
        stored=show_decision(replay.stored),
        again=show_decision(replay.again),
    )
