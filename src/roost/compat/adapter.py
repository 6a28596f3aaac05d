"""Filters and weighers written for Nova, as rules of ours: each row is shown to them as a host state."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from roost.compat import weights
from roost.compat.config_view import use
from roost.compat.host_rows import HostRow, rows_of
from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.scheduler.host_state import HostState
from roost.compat.weights import WeighedObject, multiplier_of
from roost.engine.types import Mask, Scores
from roost.model.decision import Limits
from roost.model.settings import Settings
from roost.scheduler.hosts import HostView
from roost.scheduler.plugins import RuleClass
from roost.scheduler.rules import NoOptions
from roost.scheduler.spec import Spec


def adapt(kind: type) -> RuleClass | None:
    """Return a rule class that runs a class written for Nova; None for a class that is no filter or weigher.

    A rule like this looks at hosts one by one, so it is far slower than one over columns.
    """
    is_filter = hasattr(kind, "host_passes") or hasattr(kind, "filter_all")
    is_weigher = any(hasattr(kind, name) for name in ("_weigh_object", "_weight_object", "weigh_objects"))
    if not is_filter and not is_weigher:
        return None
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
    return cast("RuleClass", type(kind.__name__, (_AdaptedFilter if is_filter else _AdaptedWeigher,), attributes))


class _Adapted:
    section = "filter_scheduler"
    options = NoOptions
    name: str
    kind: type

    def __init__(self, options: NoOptions, settings: Settings | None = None) -> None:
        self._settings = settings
        use(settings)
        self._foreign = self.kind()

    @classmethod
    def of_settings(cls, options: NoOptions, settings: Settings) -> "_Adapted":
        """Make the rule so that CONF shows some settings whenever it is at work."""
        return cls(options, settings)

    def concerns(self, spec: Spec) -> bool:
        """Say yes, since nobody can know."""
        return True


class _AdaptedFilter(_Adapted):
    def reads(self, spec: Spec) -> str:
        """Say that it may look at everything."""
        return "use"

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Ask about each host."""
        return self._asked(hosts, spec)[1]

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return the numbers among the limits that the class sets on each host that it keeps."""
        return [
            {name: float(each) for name, each in row.limits.items() if isinstance(each, int | float)}
            for row in self._asked(hosts, spec)[0]
        ]

    def _asked(self, hosts: HostView, spec: Spec) -> tuple[Sequence[HostRow | HostState], Mask]:
        use(self._settings)
        rows, wanted = rows_of(hosts, spec), _request_spec(hosts, spec)
        if hasattr(self._foreign, "filter_all"):
            passed = {id(row) for row in self._foreign.filter_all(rows, wanted) or ()}
            return rows, np.array([id(row) in passed for row in rows], dtype=np.bool_)
        return rows, np.array([bool(self._foreign.host_passes(row, wanted)) for row in rows], dtype=np.bool_)

    def reason(self, spec: Spec) -> str:
        """Say which class refused them."""
        return f"do not pass {self.name}"


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

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Ask about all hosts."""
        use(self._settings)
        foreign, wanted = self._foreign, _request_spec(hosts, spec)
        weighed = [WeighedObject(row, 0.0) for row in rows_of(hosts, spec)]
        spelled = getattr(type(foreign), "weight_objects", None)
        if spelled is not None and spelled is not weights.BaseWeigher.weight_objects:
            found = foreign.weight_objects(weighed, wanted)
        elif hasattr(foreign, "weigh_objects"):
            found = foreign.weigh_objects(weighed, wanted)
        else:
            weigh = foreign._weigh_object if hasattr(foreign, "_weigh_object") else foreign._weight_object  # noqa: SLF001  # Their contract.
            found = [weigh(each.obj, wanted) for each in weighed]
        return np.array(found, dtype=np.float64)


def _request_spec(hosts: HostView, spec: Spec) -> RequestSpec:
    wanted = RequestSpec.from_request(spec.request, spec.group, pci_requests=spec.pci_requests)
    wanted.instance_uuid = spec.moved_uuid
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


def extra_spec_problem(name: str, value: str) -> str:
    """Return what is wrong with an extra spec, by the validators there are; nothing where it is right."""
    # Most processes meet no extra spec, and need not load what is known of them.
    from roost.compat.api.validation.extra_specs.validators import problem_of

    return problem_of(name, value)
