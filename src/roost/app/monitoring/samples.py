"""The metrics of a fleet and of a database, from their sums and counts."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from roost.app.monitoring.host_zones import read_zones
from roost.engine.columns.state import State
from roost.engine.survey.fleet_sums import ClassSum, sum_classes, survey_hosts
from roost.model.host import HostFacts, is_up
from roost.model.settings.monitoring_settings import Monitoring
from roost.model.work.operation import Status
from roost.observe import fleet_metrics as families
from roost.observe.survey_board import Sample, sample
from roost.store.upkeep.row_counts import DatabaseCounts

# Pause after each chunk of work, so that the deciding thread gets the interpreter at once.
_PAUSE_S = 0.0005
_NO_ZONE, _OTHER_ZONE = "none", "other"


def survey_fleet(
    state: State, *, limits: Monitoring, default_zone: str, now_s: float, down_time_s: float
) -> list[Sample]:
    """Return the metrics of a fleet.

    Args:
        state: the columns; another thread may change them.
        limits: upper bounds of zones and classes.
        default_zone: zone of hosts without a zone in their aggregates.
        now_s: seconds since the epoch.
        down_time_s: seconds without a report after which a host is down.
    """

    def pause() -> None:
        time.sleep(_PAUSE_S)

    def judge(facts: HostFacts) -> str:
        if not is_up(facts, now_s=now_s, down_time_s=down_time_s):
            return "down"
        return "disabled" if facts.is_disabled else "up"

    zones = read_zones(state)

    def zone_of(aggregates: frozenset[int]) -> str:
        found = sorted(zone for aggregate in aggregates for zone in zones.get(aggregate, ()))
        return found[0] if found else default_zone

    hosts = survey_hosts(state, zone_of=zone_of, judge=judge, rest=_NO_ZONE, pause=pause)
    shown = _largest_zones(hosts.counts, limits.zones_max)
    by_state: dict[tuple[str, str], int] = {
        (name, zone): 0 for zone in shown.values() for name in ("up", "down", "disabled")
    }
    for (host_state, zone), count in hosts.counts.items():
        by_state[host_state, shown[zone]] += count
    samples = [sample(families.HOSTS, *labels, value=count) for labels, count in sorted(by_state.items())]
    return samples + list(_class_samples(sum_classes(state, hosts, pause=pause), shown, limits.classes_max))


def _largest_zones(counts: Mapping[tuple[str, str], int], zones_max: int) -> dict[str, str]:
    """Return the shown name of each zone: its own, or the common name of the smallest zones."""
    sizes: dict[str, int] = {}
    for (_, zone), count in counts.items():
        sizes[zone] = sizes.get(zone, 0) + count
    ordered = sorted(sizes, key=lambda zone: (-sizes[zone], zone))
    if len(ordered) <= zones_max:
        return {zone: zone for zone in ordered}
    return {zone: zone if at < zones_max - 1 else _OTHER_ZONE for at, zone in enumerate(ordered)}


def _class_samples(sums: Sequence[ClassSum], shown: Mapping[str, str], classes_max: int) -> Iterator[Sample]:
    providers: dict[str, int] = {}
    totals: dict[tuple[str, str], list[int]] = {}
    for each in sums:
        providers[each.resource_class] = providers.get(each.resource_class, 0) + each.provider_count
        total = totals.setdefault((each.resource_class, shown.get(each.zone, each.zone)), [0, 0, 0, 0])
        for at, amount in enumerate((each.capacity, each.used, each.stranded_by_class, each.stranded_by_host)):
            total[at] += amount
    kept = set(sorted(providers, key=lambda name: (-providers[name], name))[:classes_max])
    for (name, zone), (capacity, used, by_class, by_host) in sorted(totals.items()):
        if name in kept:
            yield sample(families.CAPACITY, name, zone, value=capacity)
            yield sample(families.USED, name, zone, value=used)
            yield sample(families.STRANDED, name, zone, "other_class", value=by_class)
            yield sample(families.STRANDED, name, zone, "host", value=by_host)


def database_samples(counts: DatabaseCounts, *, now_s: float) -> Iterator[Sample]:
    """Yield the metrics of a database."""
    for status in get_args(Status):
        yield sample(families.INSTANCES, status, value=counts.instances.get(status, 0))
    for kind, open_now in sorted(counts.operations.items()):
        yield sample(families.OPERATIONS_OPEN, kind, value=open_now.count)
        yield sample(families.OLDEST_OPERATION, kind, value=max(0.0, now_s - open_now.oldest_s))
    for labels, count in sorted(counts.migrations.items()):
        yield sample(families.MIGRATIONS_OPEN, *labels, value=count)
    for state in ("waiting", "taken"):
        yield sample(families.ORDERS_OPEN, state, value=counts.orders.get(state, 0))
    for state in ("ready", "arriving", "gone"):
        yield sample(families.AGENTS, state, value=counts.agents.get(state, 0))
    yield sample(families.AGENTS_REPORTING, value=counts.agents_reporting)
    yield sample(families.DATABASE_SIZE, value=counts.size_bytes)
    backup, audit = counts.upkeep.get("backup"), counts.upkeep.get("audit")
    if backup is not None:
        yield sample(families.BACKUP_TIME, value=backup.at_s)
        yield sample(families.BACKUP_BYTES, value=backup.size_bytes)
    if audit is not None:
        yield sample(families.AUDIT_TIME, value=audit.at_s)
        yield sample(families.AUDIT_FINDINGS, value=audit.findings)
