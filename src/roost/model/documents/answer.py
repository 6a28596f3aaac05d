"""The answer of ``roost decide``: a decision with all its evidence, host by host."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.evidence.decision import Contribution, Limits


class ProviderShare(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of an instance on one provider."""

    provider: Annotated[str, Meta(description="Name of the provider.")]
    uuid: Annotated[str, Meta(description="Its uuid.")]
    resources: Annotated[dict[str, int], Meta(description="Amount of each resource class.")]


class AnswerPick(msgspec.Struct, frozen=True, kw_only=True):
    """A host for one instance."""

    host: Annotated[str, Meta(description="Name of the service.")]
    nodename: Annotated[str, Meta(description="Name of the node.")]
    cell_uuid: Annotated[str, Meta(description="Its cell.")]
    instance_uuid: Annotated[
        str | None, Meta(description="The instance; null where the request names none, and in an alternate.")
    ]
    allocations: Annotated[
        tuple[ProviderShare, ...], Meta(description="What it takes of whom; empty where no candidates were searched.")
    ]

    limits: Annotated[
        Limits,
        Meta(description="What the host may have in use, by Nova's names of limits, as filters say; forced: empty."),
    ] = {}


class RefusedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host refused by one rule after all earlier rules accepted it."""

    host: Annotated[str, Meta(description="Name of the service.")]
    nodename: Annotated[str, Meta(description="Name of the node.")]
    reason: Annotated[
        str, Meta(description="What it has or is, where the rule can tell; else the reason of the stage.")
    ]


class AnswerStage(msgspec.Struct, frozen=True, kw_only=True):
    """One rule's verdict."""

    rule: Annotated[
        str,
        Meta(
            description="search: of inventories, traits and aggregates; requested_aggregates: of aggregates alone; "
            "requested_hosts: of hosts that the request names; else a filter."
        ),
    ]
    reason: Annotated[str, Meta(description="What the hosts it refuses lack, without a subject.")]
    before: Annotated[int, Meta(description="Hosts that it judged.")]
    after: Annotated[int, Meta(description="Hosts that it kept.")]
    refused: Annotated[tuple[RefusedHost, ...], Meta(description="The others, in the order of the fleet.")]


class RankedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host accepted by every rule, with its weight."""

    host: Annotated[str, Meta(description="Name of the service.")]
    nodename: Annotated[str, Meta(description="Name of the node.")]
    total: Annotated[float, Meta(description="The sum of the contributions.")]
    weights: Annotated[
        tuple[Contribution, ...],
        Meta(description="One a weigher; empty where one host is left, since nothing is weighed then."),
    ]


class AnswerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in force."""

    filters: Annotated[tuple[str, ...], Meta(description="Names of the enabled filters, in order.")]
    weighers: Annotated[tuple[str, ...], Meta(description="Names of the weighers, in order.")]
    host_subset_size: Annotated[int, Meta(description="One of so many best hosts is drawn.")]
    shuffle_best_same_weighed_hosts: Annotated[bool, Meta(description="Whether hosts of the best weight are shuffled.")]
    max_attempts: Annotated[int, Meta(description="The chosen host and its alternates.")]
    fingerprint: Annotated[str, Meta(description="Equal for equal settings.")]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about a request on a fleet. Equal documents, settings and seeds give equal answers."""

    version: Annotated[Literal[1], Meta(description="Of this kind of document.")] = 1
    roost: Annotated[str, Meta(description="Version of the program that answers.")]
    outcome: Annotated[Literal["granted", "refused"], Meta(description="For all instances, or for none.")]
    reason: Annotated[str, Meta(description="Of a refusal, in one line; else empty.")]
    searched: Annotated[bool, Meta(description="Whether candidates were searched on providers.")]
    scope: Annotated[str, Meta(description="The same in a sentence.")]
    count: Annotated[int, Meta(description="Instances asked for.")]
    picks: Annotated[tuple[AnswerPick, ...], Meta(description="One an instance; none when refused.")]
    alternates: Annotated[
        dict[str, tuple[AnswerPick, ...]],
        Meta(description="By cell of a chosen host: hosts to try when building fails, best first."),
    ]
    stages: Annotated[
        tuple[AnswerStage, ...],
        Meta(description="In order; of the first instance, or when refused of the one that found no host."),
    ]
    ranking: Annotated[
        tuple[RankedHost, ...],
        Meta(description="All hosts that passed, best first, for the first instance; none when refused."),
    ]
    warnings: Annotated[tuple[str, ...], Meta(description="What was passed over in the request, one sentence each.")]
    settings: Annotated[AnswerSettings, Meta(description="The settings in force.")]
    seed: Annotated[int, Meta(description="Of the draw among the best hosts, where settings ask for one.")]
    now: Annotated[float, Meta(description="The moment of the decision, in seconds since the epoch.")]
