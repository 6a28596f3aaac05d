"""What pre-filters are: rules that edit the question to Placement before it is asked, in Nova's order.

Source:
    nova/scheduler/request_filter.py, whose functions give each pre-filter its name.
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
    """All that pre-filters look at."""

    request: Request
    required: frozenset[str]  # traits that flavor, image and resource groups require
    aggregates: Aggregates
    are_hosts_owned: bool  # whether every host says by a trait that it belongs to Nova
    default_zone: str
    settings: SchedulerSettings


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a pre-filter does: it adds to the question, or refuses the request whatever hosts there are."""

    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    device_required: frozenset[str] = frozenset()  # of each resource group of PCI devices
    member_of: tuple[frozenset[str], ...] = ()  # aggregate uuids; of every set at least one
    forbidden_aggregates: frozenset[str] = frozenset()  # uuids
    warnings: tuple[str, ...] = ()  # one sentence each
    refusal: str = ""  # a sentence; empty: the request may go on


NOTHING = Effect()
Prefilter = Callable[[PrefilterContext], Effect]


def run_prefilters(prefilters: Mapping[str, Prefilter], context: PrefilterContext) -> Iterator[tuple[str, Effect]]:
    """Give the name and the effect of each pre-filter that has one; the first that refuses is the last."""
    for name, prefilter in prefilters.items():
        effect = prefilter(context)
        if effect is NOTHING or effect == NOTHING:
            continue
        yield name, effect
        if effect.refusal:
            return


def require_root_traits(*traits: str) -> Effect:
    """Require traits of the root provider; if the field does not know one of them, none, with a warning."""
    unknown = sorted(set(traits) - standard_traits())
    if unknown:
        return Effect(warnings=(f"{', '.join(unknown)} is no standard trait, so it is not required",))
    return Effect(root_required=frozenset(traits))


def trait_words(name: str) -> str:
    """Return a name as it is written in a trait.

    >>> trait_words("spapr-vlan")
    'SPAPR_VLAN'
    """
    return name.upper().replace("-", "_")
