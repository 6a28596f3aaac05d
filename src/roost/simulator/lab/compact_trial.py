"""One trial of a compaction: a trace on some hosts, under one policy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from roost.model.fleet import Departure, Fleet
from roost.model.request import Request
from roost.model.settings.roost_settings import FilterScheduler, Scheduler, Settings
from roost.placement.current import pause_collection
from roost.scheduler.framework.plugin import NoOptions, Rules
from roost.scheduler.pipeline.budget import lift_search_limit
from roost.simulator.lab.compact_policies import POLICIES
from roost.simulator.replay import Progress

if TYPE_CHECKING:
    from roost.product import Roost

_CHUNK = 64  # acts that share a commit


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a trial."""

    host_count: int
    refused: int  # requests; a trial ends when they exceed the bound, so this may be one more
    empty_hosts: int  # hosts without instances at the end
    is_finished: bool  # whether the refused requests stayed within the bound


def run_trial(
    fleet: Fleet,
    acts: Sequence[Request | Departure],
    policy: str,
    *,
    refused_max: int,
    has_filters: bool,
    progress: Progress | None = None,
) -> Trial:
    """Let requests arrive and instances leave, until more requests than a bound were refused.

    Args:
        fleet: the hosts; the first wins a tie.
        acts: in order.
        policy: a name of ``POLICIES``.
        refused_max: the bound.
        has_filters: whether the default filters judge hosts too; else only processors and memory count.
        progress: called after each commit.
    """
    roost = _open_fleet(fleet, policy, has_filters=has_filters)
    refused = 0
    with lift_search_limit(roost.state), pause_collection():
        for first in range(0, len(acts), _CHUNK):
            decisions = roost.work(acts[first : first + _CHUNK])
            refused += sum(decision is not None and not decision.is_granted for decision in decisions)
            if progress is not None:
                progress(min(first + _CHUNK, len(acts)), len(acts))
            if refused > refused_max:
                break
    hosts = roost.state.hosts
    return Trial(
        host_count=len(fleet.hosts),
        refused=refused,
        empty_hosts=int((hosts.column("num_instances") == 0).sum()),
        is_finished=refused <= refused_max,
    )


def _open_fleet(fleet: Fleet, policy: str, *, has_filters: bool) -> "Roost":
    """Return a Roost without a database, with these hosts, and the policy as its only weigher."""
    # Imported here, because only workers need the whole program.
    from roost.engine.columns.state import State
    from roost.placement.current import Current
    from roost.product import Roost
    from roost.scheduler import registry
    from roost.simulator.seeded_random import SeededRandom
    from roost.store.dry_store import DryStore

    settings = Settings(
        scheduler=Scheduler(max_attempts=1),
        filter_scheduler=FilterScheduler(host_subset_size=1)
        if has_filters
        else FilterScheduler(host_subset_size=1, enabled_filters=()),
    )
    store = DryStore(position=0, next_ids={})
    roost = Roost(
        store,
        settings,
        random=SeededRandom(1),
        current=Current(store, state=State()),
        rules=Rules(filters=registry.build(settings).filters, weighers=(POLICIES[policy](NoOptions()),)),
    )
    roost.install(fleet)
    return roost
