"""The reasons of a decision, and the changes that would alter it."""

from typing import Literal

import msgspec

from roost.model.evidence.decision import Decision
from roost.model.request import Request

ChangeKind = Literal[
    "amount", "trait", "zone", "aggregates", "server_group", "named_hosts", "image", "capability", "groups", "count"
]


class RuleVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of one rule, in its turn and on its own."""

    rule: str  # search, requested_hosts, or the name of a filter
    reason: str  # shortcoming of the rejected hosts, as a phrase without a subject
    in_turn: int  # rejected hosts among those that earlier rules accepted
    alone: int  # rejected hosts among the whole fleet
    only: int  # hosts rejected by this rule only


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """The shortcoming of a host for one rule."""

    reason: str
    resource_class: str = ""  # empty: the shortcoming is not an amount
    has: int = 0  # available amount in the unit of the class, or number of fitting request groups
    wanted: int = 0


class NearMiss(msgspec.Struct, frozen=True, kw_only=True):
    """A host that nearly fits."""

    host: str
    shortfalls: list[Shortfall]  # one per rule that rejects it


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest relaxation of its kind with which the request would fit."""

    kind: ChangeKind
    text: str  # in words: "49,152 MiB memory instead of 65,536"
    hosts: int  # number of hosts for the first instance with this change
    request: Request  # with the change


class Never(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a request could be placed on the empty fleet."""

    could_fit: bool
    reason: str = ""  # of a refusal on the empty fleet, in one line


class RankedHost(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a ranking."""

    host: str
    total: float
    shares: dict[str, float]  # weigher -> its contribution to the total


class Tip(msgspec.Struct, frozen=True, kw_only=True):
    """The change of a multiplier with which another host would win."""

    weigher: str
    host: str  # would tie with the winner
    multiplier: float  # in force
    tipping: float  # nearest multiplier for a tie


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """Why a weigher prefers the best host, or would not: "host strands 1.20 GPUs less than other"."""

    weigher: str
    host: str  # the best one
    text: str  # in words: "strands 1.20 GPUs less"
    other: str  # the next host that differs


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of a request on a fleet at one time."""

    hosts: int  # number of judged hosts
    left: int  # number of hosts that passed every rule
    reason: str = ""  # of a refusal, in one line
    rules: list[RuleVerdict]
    nearest: list[NearMiss] = []  # of a refusal, the nearest first
    changes: list[Change] = []  # of a refusal, in descending order of hosts
    never: Never | None = None  # of a refusal
    ranking: list[RankedHost] = []  # of a granted request, best first
    preferences: list[Preference] = []  # of a granted request, by weighers that can say why
    tips: list[Tip] = []  # of a granted request, the smallest change of a multiplier first


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """A stored decision, and its explanation as of the time of the decision."""

    decision: Decision
    request: Request  # without uuids of instances; its count is the decision's
    explanation: Explanation | None  # None: the state of that time is no longer stored
    note: str = ""  # reason for a missing explanation
