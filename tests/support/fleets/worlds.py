"""A whole Roost over an in-memory store; the test controls time and randomness."""

from collections.abc import Mapping, Sequence

from roost.app import Roost
from roost.engine.columns.state import State
from roost.model.evidence.decision import Decision
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostFacts, HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from roost.model.settings.roost_settings import FilterScheduler, Scheduler, Settings
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.ports import Store
from roost.simulator.seeded_random import SeededRandom
from roost.store.memory_store import MemoryStore
from tests.support.fleets.named_uuids import uuid_named


class FixedClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.time_s = now_s

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        return self.time_s

    def elapsed_s(self) -> float:
        """Return the same as ``now_s``."""
        return self.time_s


def settings_of(
    *,
    enabled_filters: Sequence[str] | None = None,
    max_attempts: int = 3,
    host_subset_size: int = 1,
    shuffle: bool = False,
    group_max: int = 64,
    options: Mapping[str, object] | None = None,
    available_filters: Sequence[str] = FilterScheduler().available_filters,
) -> Settings:
    """Return settings with defaults except for the arguments; ``options`` go to [filter_scheduler]."""
    enabled = FilterScheduler().enabled_filters if enabled_filters is None else tuple(enabled_filters)
    return Settings(
        scheduler=Scheduler(max_attempts=max_attempts),
        filter_scheduler=FilterScheduler(
            available_filters=tuple(available_filters),
            enabled_filters=enabled,
            host_subset_size=host_subset_size,
            shuffle_best_same_weighed_hosts=shuffle,
        ),
        store=StoreSettings(group_max=group_max),
        tables={"filter_scheduler": dict(options or {})},
    )


def roost_on(
    store: Store | None = None, *, settings: Settings | None = None, seed: int = 0, now_s: float = 1000.0
) -> Roost:
    """Open a Roost; equal seeds on equal stores give equal decisions."""
    return Roost(
        MemoryStore() if store is None else store,
        settings or settings_of(),
        clock=FixedClock(now_s),
        random=SeededRandom(seed),
    )


def host(name: str, *, aggregates: Sequence[str] = (), facts: HostFacts | None = None, **totals: int) -> Fleet:
    """Return a host with one provider; ``totals`` are by class, by default 8 VCPU and 32 MEMORY_MB."""
    totals = totals or {"VCPU": 8, "MEMORY_MB": 32}
    provider = ProviderSpec(
        uuid=uuid_named(name),
        name=name,
        inventories={resource_class: Inventory(total=total) for resource_class, total in totals.items() if total},
        aggregates=frozenset(uuid_named(aggregate) for aggregate in aggregates),
    )
    spec = HostSpec(provider_uuid=provider.uuid, host=name, node=name, facts=facts or HostFacts())
    return Fleet(providers=[provider], hosts=[spec])


def merge_fleets(*fleets: Fleet) -> Fleet:
    """Return one fleet with the content of several fleets."""
    return Fleet(
        providers=[each for fleet in fleets for each in fleet.providers],
        hosts=[each for fleet in fleets for each in fleet.hosts],
        aggregates=[each for fleet in fleets for each in fleet.aggregates],
        groups=[each for fleet in fleets for each in fleet.groups],
    )


def hosts(count: int, **totals: int) -> Fleet:
    """Return equal hosts, named h0, h1 and so on."""
    return merge_fleets(*(host(f"h{number}", **totals) for number in range(count)))


def aggregate(name: str, **metadata: str) -> Fleet:
    return Fleet(aggregates=[Aggregate(uuid=uuid_named(name), name=name, metadata=metadata)])


def group(name: str, policy: str, limit: int = 1) -> Fleet:
    return Fleet(
        groups=[ServerGroup(uuid=uuid_named(name), name=name, policy=policy, max_server_per_host=limit)]  # type: ignore[arg-type]  # as named
    )


def small_request(*, vcpus: int = 1, memory_mb: int = 1, in_group: str | None = None, **request: object) -> Request:
    """Return a request for small instances."""
    flavor = Flavor(name="small", vcpus=vcpus, memory_mb=memory_mb)
    return Request(flavor=flavor, group=None if in_group is None else uuid_named(in_group), **request)  # type: ignore[arg-type]  # as named


def chosen_hosts(decision: Decision) -> list[str]:
    """Return the host of each instance of a decision."""
    return [pick.host for pick in decision.picks]


def roost_with(*fleets: Fleet, store: Store | None = None, settings: Settings | None = None, seed: int = 0) -> Roost:
    """Open a Roost with a fleet."""
    opened = roost_on(store, settings=settings, seed=seed)
    opened.install(merge_fleets(*fleets))
    return opened


def digest(state: State) -> dict[str, object]:
    """Return all inputs of decisions by names and uuids; equal for equal states, whatever their history."""
    providers, hosts_, groups = state.providers, state.hosts, state.groups.values()
    return {
        "used": {
            (providers.uuids[row], state.class_ids.name_of(class_id)): (
                columns.used.data.item(row),
                columns.free.data.item(row),
                columns.capacity.data.item(row),
            )
            for class_id, columns in state.classes.items()
            for row in columns.holders
        },
        "columns": {
            (name, hosts_.nodes[row]): column.data.item(row)
            for name, column in hosts_.columns.items()
            for row in range(len(hosts_))
        },
        "best": {
            (hosts_.nodes[row], state.class_ids.name_of(class_id)): state.best_free(class_id).item(row)
            for class_id, columns in state.classes.items()
            if columns.holders
            for row in range(len(hosts_))
        },
        "groups": {
            each.uuid: (
                sorted(each.places.items()),
                sorted((hosts_.nodes[row], count) for row, count in each.members.items()),
            )
            for each in groups
        },
        "holders": {
            holder.uuid: (holder.project_id, sorted(holder.takes), holder.instance) for holder in state.holders.values()
        },
        "generations": {
            providers.uuids[row]: providers.generation.data.item(row) for row in providers.row_of_id.values()
        },
    }
