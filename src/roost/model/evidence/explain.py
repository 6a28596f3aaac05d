"""Why a request was answered as it was, and what would have changed the answer."""

from typing import Literal

import msgspec

from roost.model.evidence.decision import Decision
from roost.model.request import Request

ChangeKind = Literal[
    "amount", "trait", "zone", "aggregates", "server_group", "named_hosts", "image", "capability", "groups", "count"
]


class RuleVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, in its turn and on its own."""

    rule: str  # search, requested_hosts, or the name of a filter
    reason: str  # what the hosts it refuses lack, without a subject
    in_turn: int  # hosts it refused of those that the rules before it had left
    alone: int  # hosts it refuses, asked about every host of the fleet
    only: int  # hosts that it refuses and no other rule does


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """What a host is short of for one rule."""

    reason: str
    resource_class: str = ""  # empty: no amount, the host lacks something that is there or not
    has: int = 0  # of the class, or groups of those asked for, that it could serve; in the unit of the class
    wanted: int = 0


class NearMiss(msgspec.Struct, frozen=True, kw_only=True):
    """A host that was refused by little."""

    host: str
    shortfalls: list[Shortfall]  # one a rule that refuses it


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest change of its kind by which the request would have fitted."""

    kind: ChangeKind
    text: str  # what is other: "49,152 MiB memory instead of 65,536"
    hosts: int  # that could take the first instance then
    request: Request  # as it would have to be


class Never(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a request could be placed if nobody ran on the fleet."""

    could_fit: bool
    reason: str = ""  # of the refusal on the empty fleet, in one line


class RankedHost(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a ranking."""

    host: str
    total: float
    shares: dict[str, float]  # weigher -> its contribution to the total


class Tip(msgspec.Struct, frozen=True, kw_only=True):
    """What would have let another host win."""

    weigher: str
    host: str  # that would have drawn level with the winner
    multiplier: float  # in force
    tipping: float  # the nearest multiplier at which it draws level


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A request judged on a fleet at one moment, in full."""

    hosts: int  # judged
    left: int  # that passed every rule
    reason: str = ""  # of a refusal, in one line
    rules: list[RuleVerdict]
    nearest: list[NearMiss] = []  # of a refusal, the nearest first
    changes: list[Change] = []  # of a refusal, those that open most hosts first
    never: Never | None = None  # of a refusal
    ranking: list[RankedHost] = []  # of a granted request, best first
    tips: list[Tip] = []  # of a granted request, the smallest change of a multiplier first


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """A stored decision, and its explanation as of the moment it was made."""

    decision: Decision
    request: Request  # without uuids of instances; its count is the decision's
    explanation: Explanation | None  # None: what the decision saw is no longer kept
    note: str = ""  # why there is no explanation
