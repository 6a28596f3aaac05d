"""Rules that run Nova's classes of filters and weighers, with each host as a host state."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from roost.compat import installed_nova, weights
from roost.compat.config_view import use_settings
from roost.compat.host_rows import HostRow, rows_of
from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.objects.current_fleet import use_fleet
from roost.compat.objects.lookups import Fleet
from roost.compat.plugin_log import forward_log
from roost.compat.scheduler.host_state import HostState
from roost.compat.weights import WeighedObject, multiplier_of
from roost.engine.columns.types import Mask, Scores
from roost.model.allocation import Mappings
from roost.model.evidence.decision import Limits
from roost.model.settings.roost_settings import Settings
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec
from roost.scheduler.registry import RuleClass


def adapt_class(kind: type, *, is_filter: bool) -> RuleClass:
    """Return a rule class that runs a filter or a weigher written for Nova."""
    attributes: dict[str, Any] = {
        "__doc__": kind.__doc__,
        "name": kind.__name__,
        "nova_name": kind.__name__,
        "kind": kind,
        "run_filter_once_per_request": getattr(kind, "run_filter_once_per_request", False),
        "run_on_rebuild": getattr(kind, "RUN_ON_REBUILD", False),
        "minval": getattr(kind, "minval", None),
        "maxval": getattr(kind, "maxval", None),
    }
    bases: tuple[type, ...] = (_AdaptedWeigher,)
    if is_filter:
        bases = (_AdaptedChoosingFilter if hasattr(kind, "filter_candidates") else _AdaptedFilter,)
        if attributes["run_filter_once_per_request"]:
            bases = (_OncePerRequest, *bases)
    return cast("RuleClass", type(kind.__name__, bases, attributes))


class _AdaptedRule:
    section = "filter_scheduler"
    options = NoOptions
    name: str
    kind: type

    def __init__(self, options: NoOptions, settings: Settings | None = None) -> None:
        self._settings = settings
        use_settings(settings)
        if settings is not None:
            forward_log(self.kind.__module__, settings.scheduler.plugin_log_level)
        installed_nova.objects()  # Import an installed Nova now, because the import would delay the first decision.
        self._foreign = self.kind()

    @classmethod
    def of_settings(cls, options: NoOptions, settings: Settings) -> "_AdaptedRule":
        """Make the rule. While the rule runs, CONF shows these settings."""
        return cls(options, settings)

    def concerns(self, spec: Spec) -> bool:
        """Return True, because foreign classes have no such method."""
        return True

    @contextmanager
    def _enter_decision(self, hosts: HostView, spec: Spec) -> Iterator[None]:
        """Set CONF and the look-ups to the current decision."""
        use_settings(self._settings)
        with use_fleet(Fleet(hosts, spec, rows_of)):
            yield


class _AdaptedFilter(_AdaptedRule):
    def reads(self, spec: Spec) -> str:
        """Return the widest scope, because a foreign class does not declare its reads."""
        return "use"

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Run the class on each host."""
        return self._evaluate(hosts, spec)[1]

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return the numeric limits set by the class on each accepted host."""
        return list(map(_limits_of, self._evaluate(hosts, spec)[0]))

    def _evaluate(self, hosts: HostView, spec: Spec) -> tuple[Sequence[HostRow | HostState], Mask]:
        with self._enter_decision(hosts, spec):
            rows, spec_obj = rows_of(hosts, spec), _request_spec(hosts, spec)
            passed = {id(row) for row in self._passing(rows, spec_obj)}
        return rows, np.array([id(row) in passed for row in rows], dtype=np.bool_)

    def _passing(self, rows: Sequence[HostRow | HostState], spec_obj: RequestSpec) -> Iterable[Any]:
        if hasattr(self._foreign, "filter_all"):
            passed: Iterable[Any] = self._foreign.filter_all(rows, spec_obj) or ()
            return list(passed)
        return [row for row in rows if self._foreign.host_passes(row, spec_obj)]

    def reason(self, spec: Spec) -> str:
        """Return a reason with the name of the class."""
        return f"do not pass {self.name}"


class _OncePerRequest:
    """A filter that judges each host once per request, and on every call outside of a request."""

    _evaluate: Any
    _verdicts: dict[int, tuple[bool, Limits]] | None = None  # by host row, with the limits set on the host

    def begin(self) -> None:
        """Start to cache verdicts, until ``end``."""
        self._verdicts = {}

    def end(self) -> None:
        """Drop the cached verdicts."""
        self._verdicts = None

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Run the class on each host without a cached verdict."""
        return np.array([passes for passes, _ in self._find_verdicts(hosts, spec)], dtype=np.bool_)

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return the numeric limits set by the class on each host."""
        return [limits for _, limits in self._find_verdicts(hosts, spec)]

    def _find_verdicts(self, hosts: HostView, spec: Spec) -> list[tuple[bool, Limits]]:
        rows = hosts.rows.tolist()
        verdicts = {} if self._verdicts is None else self._verdicts
        missing = [position for position, row in enumerate(rows) if row not in verdicts]
        if missing:
            subset = hosts if len(missing) == len(rows) else hosts.subset(np.array(missing, dtype=np.intp))
            judged, passing = self._evaluate(subset, spec)
            for position, row, passes in zip(missing, judged, passing.tolist(), strict=True):
                verdicts[rows[position]] = passes, _limits_of(row)
        return [verdicts[row] for row in rows]


class _AdaptedChoosingFilter(_AdaptedFilter):
    """A filter that rejects single allocation candidates of a host."""

    def accepts(self, hosts: HostView, spec: Spec, *, at: int, mappings: Mappings) -> bool:
        """Run the class on a host with a single candidate."""
        row: Any = rows_of(hosts.subset(np.array([at], dtype=np.intp)), spec)[0]
        row.allocation_candidates = [{"mappings": mappings}]
        with self._enter_decision(hosts, spec):
            return bool(self._passing([row], _request_spec(hosts, spec)))


class _AdaptedWeigher(_AdaptedRule):
    aggregate_key = ""  # Matches no metadata, because the class reads aggregates itself.
    sign = 1.0

    @property
    def multiplier(self) -> float:
        """The multiplier for a host without aggregates."""
        if not hasattr(self._foreign, "weight_multiplier"):
            return 1.0
        use_settings(self._settings)
        return multiplier_of(self._foreign, HostState("", ""))

    def multipliers(self, hosts: HostView, spec: Spec) -> Scores | None:
        """Return each host's multiplier, which its aggregates may set."""
        if not hasattr(self._foreign, "weight_multiplier"):
            return None
        with self._enter_decision(hosts, spec):
            factors = [multiplier_of(self._foreign, row) for row in rows_of(hosts, spec)]
        return np.array(factors, dtype=np.float64)

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Weigh all hosts."""
        with self._enter_decision(hosts, spec):
            return np.array(self._weights(hosts, spec), dtype=np.float64)

    def _weights(self, hosts: HostView, spec: Spec) -> Sequence[float]:
        foreign, spec_obj = self._foreign, _request_spec(hosts, spec)
        weighed = [WeighedObject(row, 0.0) for row in rows_of(hosts, spec)]
        override = getattr(type(foreign), "weight_objects", None)
        if override is not None and override is not weights.BaseWeigher.weight_objects:
            scores: Sequence[float] = foreign.weight_objects(weighed, spec_obj)
        elif hasattr(foreign, "weigh_objects"):
            scores = foreign.weigh_objects(weighed, spec_obj)
        else:
            weigh = foreign._weigh_object if hasattr(foreign, "_weigh_object") else foreign._weight_object  # noqa: SLF001  # Nova's contract.
            scores = [weigh(each.obj, spec_obj) for each in weighed]
        return scores


def _limits_of(row: Any) -> Limits:
    return {name: float(value) for name, value in row.limits.items() if isinstance(value, int | float)}


def _request_spec(hosts: HostView, spec: Spec) -> RequestSpec:
    spec_obj = RequestSpec.from_request(spec.request, spec.group, pci_requests=spec.pci_requests)
    spec_obj.instance_uuid = spec.moved_uuid
    if installed_nova.objects() is not None:
        spec_obj.shown_numa_topology = installed_nova.numa_topology_of(spec_obj)
        spec_obj.network_metadata = installed_nova.networks_of(spec_obj.network_metadata)
        spec_obj.pci_requests = installed_nova.devices_of(spec_obj.pci_requests)
    if spec.group is not None:
        spec_obj.instance_group = InstanceGroup(
            uuid=spec.group.uuid,
            name=spec.group.name,
            policy=spec.group.policy,
            members=hosts.instances_of(spec.group),
            hosts=hosts.hosts_of(spec.group),
            rules={"max_server_per_host": spec.group.limit},
        )
    return spec_obj
