"""The amounts of a resource class in a request, with its processors and memory."""

import msgspec

from roost.errors import BadRequest
from roost.model.request import Request
from roost.scheduler.query.draft import Draft
from roost.scheduler.query.extra_spec_groups import add_defaults, add_extra_specs, add_request_groups

_encoder = msgspec.msgpack.Encoder()
# Upper bound on kept demands, some hundred bytes each.
_RECENT_MAX = 1_000


class DeviceDemand(msgspec.Struct, frozen=True, kw_only=True):
    """The demand of one instance."""

    cpus: int  # shared and dedicated ones
    memory_mb: int
    amounts: tuple[int, ...]  # of the class, one per request group, each >= 1
    required: tuple[tuple[frozenset[str], ...], ...]  # per amount: every set: at least one of its traits
    is_isolated: bool  # whether the groups use different providers


class DemandCache:
    """Finds the demand of requests, and keeps the recent ones.

    Args:
        resource_class: the class of the amounts.
    """

    def __init__(self, resource_class: str) -> None:
        self._resource_class = resource_class
        self._recent: dict[bytes, DeviceDemand] = {}

    def find(self, request: Request) -> DeviceDemand:
        """Return the demand of one instance of a request."""
        key = _encoder.encode((request.flavor, request.groups))
        demand = self._recent.get(key)
        if demand is None:
            if len(self._recent) >= _RECENT_MAX:
                self._recent.clear()
            demand = self._recent[key] = find_demand(request, self._resource_class)
        return demand


def find_demand(request: Request, resource_class: str) -> DeviceDemand:
    """Return the demand of one instance of a request; one without amounts if its groups are invalid."""
    draft = Draft()
    add_extra_specs(draft, request.flavor)
    try:
        add_request_groups(draft, request)
    except BadRequest:  # The search refuses the request.
        draft = Draft()
    add_defaults(draft, request)
    parts = [group for group in draft.groups.values() if group.resources.get(resource_class)]
    totals: dict[str, int] = {}
    for group in draft.groups.values():
        for name, amount in group.resources.items():
            totals[name] = totals.get(name, 0) + amount
    return DeviceDemand(
        cpus=totals.get("VCPU", 0) + totals.get("PCPU", 0),
        memory_mb=totals.get("MEMORY_MB", 0),
        amounts=tuple(group.resources[resource_class] for group in parts),
        required=tuple(tuple(group.required) for group in parts),
        is_isolated=draft.policy == "isolate",
    )
