"""The contract of pre-filters: rules that edit the query to Placement, in Nova's order.

Source:
    nova/scheduler/request_filter.py, the source of the pre-filters' names.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from roost.model.names import standard_traits
from roost.model.request import Request
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings

# Aggregate uuid -> its metadata.
Aggregates = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefilterContext:
    """The input of pre-filters."""

    request: Request
    required: frozenset[str]  # traits required by flavor, image and request groups
    aggregates: Aggregates
    are_hosts_owned: bool  # whether every host has the trait OWNER_NOVA
    default_zone: str
    settings: SchedulerSettings


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a pre-filter: additions to the query, or a refusal of the request."""

    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    device_required: frozenset[str] = frozenset()  # for each request group of PCI devices
    member_of: tuple[frozenset[str], ...] = ()  # aggregate uuids; at least one of every set
    forbidden_aggregates: frozenset[str] = frozenset()  # uuids
    warnings: tuple[str, ...] = ()  # one sentence each
    refusal: str = ""  # a sentence; empty: no refusal


NOTHING = Effect()
Prefilter = Callable[[PrefilterContext], Effect]


def run_prefilters(prefilters: Mapping[str, Prefilter], context: PrefilterContext) -> Iterator[tuple[str, Effect]]:
    """Yield name and effect of each pre-filter with an effect; stop after the first refusal."""
    for name, prefilter in prefilters.items():
        effect = prefilter(context)
        if effect is NOTHING or effect == NOTHING:
            continue
        yield name, effect
        if effect.refusal:
            return


def require_root_traits(*traits: str) -> Effect:
    """Require traits of the root provider; if one of them is not a standard trait, require none and warn."""
    unknown = sorted(set(traits) - standard_traits())
    if unknown:
        return Effect(warnings=(f"{', '.join(unknown)} is not a standard trait, so it is not required",))
    return Effect(root_required=frozenset(traits))


def trait_words(name: str) -> str:
    """Return a name in the spelling of traits.

    >>> trait_words("spapr-vlan")
    'SPAPR_VLAN'
    """
    return name.upper().replace("-", "_")
