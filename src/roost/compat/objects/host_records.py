"""Instances, aggregates, metrics and devices of a host, for Nova's filters."""

import datetime as dt
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from roost.compat.objects import current_fleet
from roost.compat.objects.devices import read_devices
from roost.compat.objects.image_meta import ImageMeta
from roost.compat.objects.record import Record
from roost.engine.pci.pools import UNMAPPED, supports
from roost.model.allocation import Mappings
from roost.model.host import HostFacts


@dataclass(slots=True, kw_only=True)
class Aggregate(Record):
    """An aggregate of a host."""

    name: str = ""
    uuid: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    id: int | None = None

    @property
    def availability_zone(self) -> str | None:
        """The zone in the metadata, if any."""
        return self.metadata.get("availability_zone")

    @classmethod
    def get_by_uuid(cls, context: object, aggregate_uuid: str) -> "Aggregate":  # Nova's signature.
        """Return an aggregate.

        Raises:
            AggregateNotFound: no aggregate with hosts has this uuid.
        """
        aggregate: Aggregate = current_fleet.get_aggregate(aggregate_uuid)
        return aggregate


@dataclass(slots=True, kw_only=True)
class Instance(Record):
    """An instance on a host."""

    uuid: str
    host: str = ""
    node: str = ""
    project_id: str = ""
    user_id: str = ""
    image_meta: ImageMeta | None = None

    @property
    def properties(self) -> dict[str, str]:
        """The properties of its image."""
        return {} if self.image_meta is None else self.image_meta.properties

    @classmethod
    def get_by_uuid(cls, context: object, uuid: str, *_more: object, **_options: object) -> "Instance":
        """Return an instance.

        Raises:
            InstanceNotFound: the instance has no host.
        """
        instance: Instance = current_fleet.get_instance(uuid)
        return instance


@dataclass(slots=True, frozen=True)
class MonitorMetric:
    """A measured value of a host."""

    name: str
    value: float


class CpuInfo(str):
    """Facts about the processor as JSON text; some filters of Nova read the text as a dict."""

    __slots__ = ()

    def get(self, name: str, default: Any = None) -> Any:
        """Return an entry of the dict."""
        return json.loads(self).get(name, default)


@dataclass(slots=True, kw_only=True)
class PciDeviceStats:
    """The pools of free devices of a host."""

    facts: HostFacts
    pools: list[dict[str, Any]]

    def support_requests(self, requests: Iterable[Any], provider_mapping: Mappings | None = None) -> bool:
        """Return whether the pools can serve all requests together."""
        mappings = UNMAPPED if provider_mapping is None else provider_mapping
        return supports(self.facts.pci_pools, read_devices(requests), mappings=mappings)


def service_of(host: str, facts: HostFacts, *, now_s: float) -> dict[str, Any]:
    """Return the service of a host for Nova's filters; times are in UTC, without a time zone.

    A host without an agent never reports, but counts as up, so its last report is the current time.
    """
    reported_at = _moment(now_s if facts.reported_at_s is None else facts.reported_at_s)
    return {
        "host": host,
        "binary": "nova-compute",
        "topic": "compute",
        "report_count": 0,
        "disabled": facts.is_disabled,
        "disabled_reason": facts.disabled_reason or None,
        "forced_down": facts.is_forced_down,
        "last_seen_up": reported_at,
        "created_at": reported_at,
        "updated_at": reported_at,
    }


def read_moment(moment: Any) -> float | None:
    """Convert a moment, given in seconds or as a time in UTC, to seconds since the epoch."""
    if not isinstance(moment, dt.datetime):
        return None if moment is None else float(moment)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)).timestamp()


def _moment(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, tz=dt.UTC).replace(tzinfo=None)


class Metrics(list[MonitorMetric]):
    """The metrics of a host: a list for current filters, and a dict by name for filters of Icehouse."""

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for each in self:
            if each.name == key:
                return each
        raise KeyError(key)


def metrics_of(facts: HostFacts) -> Metrics:
    """Return the metrics of a host."""
    return Metrics(MonitorMetric(name, value) for name, value in facts.metrics.items())
