"""A comparison of settings: the same recorded requests, decided under each of them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.evidence.decision import Decision


class ClassSpread(msgspec.Struct, frozen=True, kw_only=True):
    """The use of one resource class after the last decision, and its spread over the hosts with the class."""

    resource_class: Annotated[str, Meta(description="Name of the class.")]
    used: Annotated[int, Meta(description="Used amount of all hosts, in the unit of the class.")]
    capacity: Annotated[int, Meta(description="Capacity of all hosts.")]
    mean: Annotated[float, Meta(description="Mean of the used shares of the hosts.")]
    deviation: Annotated[float, Meta(description="Standard deviation of these shares.")]
    least: Annotated[float, Meta(description="Smallest share.")]
    tenth: Annotated[float, Meta(description="10th percentile.")]
    median: Annotated[float, Meta(description="50th percentile.")]
    ninetieth: Annotated[float, Meta(description="90th percentile.")]
    most: Annotated[float, Meta(description="Largest share.")]
    shares: Annotated[
        list[int | None],
        Meta(description="Share of each host in thousandths, in the order of hosts; null: none of the class."),
    ] = []


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one request."""

    outcome: Annotated[
        Literal["granted", "refused", "failed"], Meta(description="failed: the request is invalid by now.")
    ]
    hosts: Annotated[list[str], Meta(description="Chosen nodes, one per instance, at most 10.")] = []
    reason: Annotated[str, Meta(description="Reason of a refusal or a failure.")] = ""


class ComparedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded decision with different results."""

    uuid: Annotated[str, Meta(description="Uuid of the recorded decision.")]
    decided_at_s: Annotated[float, Meta(description="Its time, in seconds since the epoch.")]
    flavor: Annotated[str, Meta(description="Name of the flavor; empty: none.")]
    count: Annotated[int, Meta(description="Number of requested instances.")]
    recorded: Annotated[Result, Meta(description="The result at that time.")]
    results: Annotated[list[Result], Meta(description="The result under each set of settings, in their order.")]


class SettingsResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results under one set of settings."""

    name: Annotated[str, Meta(description="Name from the request.")]
    fingerprint: Annotated[str, Meta(description="Hash of the settings, as in stored decisions.")]
    granted: Annotated[int, Meta(description="Requests with a host for each instance.")]
    refused: Annotated[int, Meta(description="Requests without.")]
    failed: Annotated[int, Meta(description="Requests with an error.")]
    instances: Annotated[int, Meta(description="Placed instances.")]
    lost: Annotated[int, Meta(description="Consumers on removed hosts, gone from the start.")]
    hosts: Annotated[int, Meta(description="Hosts of the fleet.")]
    hosts_used: Annotated[int, Meta(description="Hosts with use after the last decision.")]
    differs: Annotated[int, Meta(description="Requests with other hosts or another outcome than under the first set.")]
    differs_from_recorded: Annotated[int, Meta(description="Likewise, than at the time of the decision.")]
    granted_over_time: Annotated[
        list[int], Meta(description="Granted requests up to each of at most 200 evenly spaced moments.")
    ]
    hosts_over_time: Annotated[list[int], Meta(description="Hosts with placed instances at these moments.")]
    classes: Annotated[list[ClassSpread], Meta(description="Use of each resource class.")]


class RecordedResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the same requests at their time."""

    granted: Annotated[int, Meta(description="Requests with a host for each instance.")]
    refused: Annotated[int, Meta(description="Requests without.")]
    instances: Annotated[int, Meta(description="Placed instances.")]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded requests in their order, decided under several sets of settings from the state before the first one."""

    requests: Annotated[int, Meta(description="Number of decided requests.")]
    departures: Annotated[int, Meta(description="Number of recorded departures of instances between them.")]
    first: Annotated[
        str, Meta(description="Uuid of the oldest decision; empty: there was none, or it is of another project.")
    ]
    since_s: Annotated[float, Meta(description="Time of the oldest decision, in seconds since the epoch; 0: none.")]
    until_s: Annotated[float, Meta(description="Time of the newest decision.")]
    recorded: Annotated[RecordedResult, Meta(description="Results at the time of the decisions.")]
    moments: Annotated[list[int], Meta(description="Number of decided requests at the moments of the lists over time.")]
    hosts: Annotated[list[str], Meta(description="Names of all nodes, if requested, in the order of shares.")]
    sets: Annotated[list[SettingsResult], Meta(description="Results under each set of settings, in their order.")]
    different: Annotated[
        int, Meta(description="Number of requests with different results under the sets; with one set, than recorded.")
    ]
    different_outcomes: Annotated[int, Meta(description="Those of them with different outcomes.")]
    decisions: Annotated[
        list[ComparedDecision],
        Meta(
            description="Up to 200 that the client may see, oldest first; with other outcomes rather than other hosts."
        ),
    ]
    notes: Annotated[list[str], Meta(description="Parts of the record without effect here, one sentence each.")]


_HOSTS_MAX = 10


def result_of(decision: Decision) -> Result:
    """Return the result of a decision."""
    return Result(
        outcome=decision.outcome, hosts=[pick.node for pick in decision.picks[:_HOSTS_MAX]], reason=decision.reason
    )
