"""The answer of ``roost decide``: a decision with all its evidence, host by host."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.evidence.decision import Contribution, Limits


class ProviderShare(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of an instance on one provider."""

    provider: Annotated[str, Meta(description="Name of the provider.")]
    uuid: Annotated[str, Meta(description="Uuid of the provider.")]
    resources: Annotated[dict[str, int], Meta(description="Amount of each resource class.")]


class AnswerPick(msgspec.Struct, frozen=True, kw_only=True):
    """A host for one instance."""

    host: Annotated[str, Meta(description="Name of the service.")]
    nodename: Annotated[str, Meta(description="Name of the node.")]
    cell_uuid: Annotated[str, Meta(description="Cell of the host.")]
    instance_uuid: Annotated[
        str | None, Meta(description="Uuid of the instance; null: unnamed in the request, or an alternate.")
    ]
    allocations: Annotated[
        tuple[ProviderShare, ...],
        Meta(description="Resources of the instance by provider; empty: candidates were not searched."),
    ]
    limits: Annotated[
        Limits,
        Meta(description="Limits of the filters for the use of the host, under Nova's names; empty for a forced host."),
    ] = {}


class RefusedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host refused by one rule after all earlier rules accepted it."""

    host: Annotated[str, Meta(description="Name of the service.")]
    nodename: Annotated[str, Meta(description="Name of the node.")]
    reason: Annotated[
        str, Meta(description="Reason for this host if the rule has one; otherwise the reason of the stage.")
    ]


class AnswerStage(msgspec.Struct, frozen=True, kw_only=True):
    """One rule's verdict."""

    rule: Annotated[
        str,
        Meta(
            description="search: inventories, traits and aggregates; requested_aggregates: aggregates alone; "
            "requested_hosts: hosts named in the request; otherwise a filter."
        ),
    ]
    reason: Annotated[str, Meta(description="Shortcoming of the refused hosts, as a phrase without a subject.")]
    before: Annotated[int, Meta(description="Number of judged hosts.")]
    after: Annotated[int, Meta(description="Number of accepted hosts.")]
    refused: Annotated[tuple[RefusedHost, ...], Meta(description="Refused hosts, in the order of the fleet.")]


class RankedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host accepted by every rule, with its weight."""

    host: Annotated[str, Meta(description="Name of the service.")]
    nodename: Annotated[str, Meta(description="Name of the node.")]
    total: Annotated[float, Meta(description="Sum of the contributions.")]
    weights: Annotated[
        tuple[Contribution, ...],
        Meta(description="One entry per weigher; empty if only one host is left, which needs no weights."),
    ]


class AnswerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in force."""

    filters: Annotated[tuple[str, ...], Meta(description="Names of the enabled filters, in order.")]
    weighers: Annotated[tuple[str, ...], Meta(description="Names of the weighers, in order.")]
    host_subset_size: Annotated[int, Meta(description="Number of best hosts to draw from.")]
    shuffle_best_same_weighed_hosts: Annotated[
        bool, Meta(description="Whether hosts with the best weight are shuffled.")
    ]
    max_attempts: Annotated[int, Meta(description="Number of hosts to try: the chosen one and its alternates.")]
    fingerprint: Annotated[str, Meta(description="Equal for equal settings.")]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about a request on a fleet. Equal documents, settings and seeds give equal answers."""

    version: Annotated[Literal[1], Meta(description="Version of the document format.")] = 1
    roost: Annotated[str, Meta(description="Version of the program.")]
    outcome: Annotated[Literal["granted", "refused"], Meta(description="Outcome for all instances together.")]
    reason: Annotated[str, Meta(description="Reason of a refusal, in one line; otherwise empty.")]
    searched: Annotated[bool, Meta(description="Whether candidates were searched on providers.")]
    scope: Annotated[str, Meta(description="Extent of the search, in a sentence.")]
    count: Annotated[int, Meta(description="Number of requested instances.")]
    picks: Annotated[tuple[AnswerPick, ...], Meta(description="One per instance; empty for a refusal.")]
    alternates: Annotated[
        dict[str, tuple[AnswerPick, ...]],
        Meta(description="Hosts to try after a failed build, best first, by cell of the chosen host."),
    ]
    stages: Annotated[
        tuple[AnswerStage, ...],
        Meta(
            description="Verdicts in the order of the rules: for the first instance or, in a refusal, for the instance "
            "without a host."
        ),
    ]
    ranking: Annotated[
        tuple[RankedHost, ...],
        Meta(description="All accepted hosts for the first instance, best first; empty for a refusal."),
    ]
    warnings: Annotated[tuple[str, ...], Meta(description="Ignored parts of the request, one sentence each.")]
    settings: Annotated[AnswerSettings, Meta(description="The settings in force.")]
    seed: Annotated[int, Meta(description="Seed of the draw among the best hosts.")]
    now: Annotated[float, Meta(description="Time of the decision, in seconds since the epoch.")]
