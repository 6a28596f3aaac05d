"""Rule classes that run filters and weighers written for Nova: they see each host as a host state."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from roost.compat import installed_nova, weights
from roost.compat.config_view import use
from roost.compat.host_rows import HostRow, rows_of
from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.objects.current_fleet import use_fleet
from roost.compat.objects.lookups import Fleet
from roost.compat.plugin_log import listen
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
            bases = (_Once, *bases)
    return cast("RuleClass", type(kind.__name__, bases, attributes))


class _Adapted:
    section = "filter_scheduler"
    options = NoOptions
    name: str
    kind: type

    def __init__(self, options: NoOptions, settings: Settings | None = None) -> None:
        self._settings = settings
        use(settings)
        if settings is not None:
            listen(self.kind.__module__, settings.scheduler.plugin_log_level)
        installed_nova.objects()  # An installed Nova is imported now, since decisions have little time.
        self._foreign = self.kind()

    @classmethod
    def of_settings(cls, options: NoOptions, settings: Settings) -> "_Adapted":
        """Make the rule so that CONF shows some settings whenever it is at work."""
        return cls(options, settings)

    def concerns(self, spec: Spec) -> bool:
        """Say yes, since nobody can know."""
        return True

    @contextmanager
    def _at_work(self, hosts: HostView, spec: Spec) -> Iterator[None]:
        """Let CONF and look-ups answer about the decision at hand."""
        use(self._settings)
        with use_fleet(Fleet(hosts, spec, rows_of)):
            yield


class _AdaptedFilter(_Adapted):
    def reads(self, spec: Spec) -> str:
        """Say that it may look at everything."""
        return "use"

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Ask about each host."""
        return self._asked(hosts, spec)[1]

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return the numbers among the limits that the class sets on each host that it keeps."""
        return list(map(_limits_of, self._asked(hosts, spec)[0]))

    def _asked(self, hosts: HostView, spec: Spec) -> tuple[Sequence[HostRow | HostState], Mask]:
        with self._at_work(hosts, spec):
            rows, wanted = rows_of(hosts, spec), _request_spec(hosts, spec)
            passed = {id(row) for row in self._passing(rows, wanted)}
        return rows, np.array([id(row) in passed for row in rows], dtype=np.bool_)

    def _passing(self, rows: Sequence[HostRow | HostState], wanted: RequestSpec) -> Iterable[Any]:
        if hasattr(self._foreign, "filter_all"):
            passed: Iterable[Any] = self._foreign.filter_all(rows, wanted) or ()
            return list(passed)
        return [row for row in rows if self._foreign.host_passes(row, wanted)]

    def reason(self, spec: Spec) -> str:
        """Say which class refused them."""
        return f"do not pass {self.name}"


class _Once:
    """A filter that judges each host once for a request; between requests it judges whenever it is called."""

    _asked: Any
    _verdicts: dict[int, tuple[bool, Limits]] | None = None  # of hosts by row, with the limits set on them

    def begin(self) -> None:
        """Keep verdicts from now on, until ``end``."""
        self._verdicts = {}

    def end(self) -> None:
        """Forget the verdicts."""
        self._verdicts = None

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Ask about each host that was not judged yet."""
        return np.array([passes for passes, _ in self._judged(hosts, spec)], dtype=np.bool_)

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return the numbers among the limits that the class set on each host."""
        return [limits for _, limits in self._judged(hosts, spec)]

    def _judged(self, hosts: HostView, spec: Spec) -> list[tuple[bool, Limits]]:
        rows = hosts.rows.tolist()
        known = {} if self._verdicts is None else self._verdicts
        missing = [at for at, row in enumerate(rows) if row not in known]
        if missing:
            some = hosts if len(missing) == len(rows) else hosts.subset(np.array(missing, dtype=np.intp))
            shown, passing = self._asked(some, spec)
            for at, row, passes in zip(missing, shown, passing.tolist(), strict=True):
                known[rows[at]] = passes, _limits_of(row)
        return [known[row] for row in rows]


class _AdaptedChoosingFilter(_AdaptedFilter):
    """A filter that narrows the ways in which a host could hold the request."""

    def accepts(self, hosts: HostView, spec: Spec, *, at: int, mappings: Mappings) -> bool:
        """Ask about a host that has only one way left."""
        row: Any = rows_of(hosts.subset(np.array([at], dtype=np.intp)), spec)[0]
        row.allocation_candidates = [{"mappings": mappings}]
        with self._at_work(hosts, spec):
            return bool(self._passing([row], _request_spec(hosts, spec)))


class _AdaptedWeigher(_Adapted):
    aggregate_key = ""  # No metadata has this key; such a weigher looks at aggregates itself.
    sign = 1.0

    @property
    def multiplier(self) -> float:
        """What the class says of a host that is in no aggregate."""
        if not hasattr(self._foreign, "weight_multiplier"):
            return 1.0
        use(self._settings)
        return multiplier_of(self._foreign, HostState("", ""))

    def multipliers(self, hosts: HostView, spec: Spec) -> Scores | None:
        """Return what the class says of each host, whose aggregates may set another multiplier."""
        if not hasattr(self._foreign, "weight_multiplier"):
            return None
        with self._at_work(hosts, spec):
            found = [multiplier_of(self._foreign, row) for row in rows_of(hosts, spec)]
        return np.array(found, dtype=np.float64)

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Ask about all hosts."""
        with self._at_work(hosts, spec):
            return np.array(self._weights(hosts, spec), dtype=np.float64)

    def _weights(self, hosts: HostView, spec: Spec) -> Sequence[float]:
        foreign, wanted = self._foreign, _request_spec(hosts, spec)
        weighed = [WeighedObject(row, 0.0) for row in rows_of(hosts, spec)]
        spelled = getattr(type(foreign), "weight_objects", None)
        if spelled is not None and spelled is not weights.BaseWeigher.weight_objects:
            found: Sequence[float] = foreign.weight_objects(weighed, wanted)
        elif hasattr(foreign, "weigh_objects"):
            found = foreign.weigh_objects(weighed, wanted)
        else:
            weigh = foreign._weigh_object if hasattr(foreign, "_weigh_object") else foreign._weight_object  # noqa: SLF001  # Their contract.
            found = [weigh(each.obj, wanted) for each in weighed]
        return found


def _limits_of(row: Any) -> Limits:
    return {name: float(each) for name, each in row.limits.items() if isinstance(each, int | float)}


def _request_spec(hosts: HostView, spec: Spec) -> RequestSpec:
    wanted = RequestSpec.from_request(spec.request, spec.group, pci_requests=spec.pci_requests)
    wanted.instance_uuid = spec.moved_uuid
    if installed_nova.objects() is not None:
        wanted.shown_numa_topology = installed_nova.numa_topology_of(wanted)
        wanted.network_metadata = installed_nova.networks_of(wanted.network_metadata)
        wanted.pci_requests = installed_nova.devices_of(wanted.pci_requests)
    if spec.group is not None:
        wanted.instance_group = InstanceGroup(
            uuid=spec.group.uuid,
            name=spec.group.name,
            policy=spec.group.policy,
            members=hosts.instances_of(spec.group),
            hosts=hosts.hosts_of(spec.group),
            rules={"max_server_per_host": spec.group.limit},
        )
    return wanted
