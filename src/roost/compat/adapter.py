"""Filters and weighers written for Nova, as rules of ours: each row is shown to them as a host state."""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from roost.compat import weights
from roost.compat.numa import topology_for
from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.scheduler.host_state import HostState, pools_of
from roost.compat.weights import WeighedObject, multiplier_of
from roost.engine.types import Mask, Scores
from roost.model.decision import Limits
from roost.scheduler.attributes import NAMES, RATIOS, TOLD, USED, WHOLE
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

    def __init__(self, options: NoOptions) -> None:
        self._foreign = self.kind()

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

    def _asked(self, hosts: HostView, spec: Spec) -> tuple[list["HostRow"], Mask]:
        rows, wanted = rows_of(hosts), _request_spec(hosts, spec)
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
        return multiplier_of(self._foreign, HostState("", ""))

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Ask about all hosts."""
        foreign, wanted = self._foreign, _request_spec(hosts, spec)
        weighed = [WeighedObject(row, 0.0) for row in rows_of(hosts)]
        spelled = getattr(type(foreign), "weight_objects", None)
        if spelled is not None and spelled is not weights.BaseWeigher.weight_objects:
            found = foreign.weight_objects(weighed, wanted)
        elif hasattr(foreign, "weigh_objects"):
            found = foreign.weigh_objects(weighed, wanted)
        else:
            weigh = foreign._weigh_object if hasattr(foreign, "_weigh_object") else foreign._weight_object  # noqa: SLF001  # Their contract.
            found = [weigh(each.obj, wanted) for each in weighed]
        return np.array(found, dtype=np.float64)


class HostRow:
    """One row, under the names of HostState's attributes. Of what is set on it only limits are looked at."""

    def __init__(self, table: "_Table", position: int) -> None:
        self._table = table
        self._position = position
        self.limits: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        values = self._table.values(name)
        if values is None:
            raise AttributeError(f"a host has no {name}")
        return values[self._position]

    def __repr__(self) -> str:
        return f"<HostRow {self.host} {self.nodename}>"


class _Table:
    """The attributes of all hosts of a view, each made when first asked for."""

    def __init__(self, hosts: HostView) -> None:
        self._hosts = hosts
        self._known: dict[str, list[Any] | None] = {}

    def values(self, name: str) -> list[Any] | None:
        """Return an attribute of every host; None if hosts have none of this name."""
        if name not in self._known:
            self._known[name] = self._made(name)
        return self._known[name]

    def _made(self, name: str) -> list[Any] | None:
        hosts = self._hosts
        for table in (USED, WHOLE):
            if name in table:
                return [int(value) for value in table[name](hosts).tolist()]
        if name in RATIOS:
            ratios: list[Any] = RATIOS[name](hosts).tolist()
            return ratios
        if name in NAMES:
            return list(NAMES[name](hosts))
        if name == "cpu_info":
            return [json.dumps(facts.cpu_info) if facts.cpu_info else None for facts in hosts.all_facts()]
        if name in TOLD:
            return [TOLD[name](facts) for facts in hosts.all_facts()]
        make = _OTHERS.get(name)
        return None if make is None else make(hosts)


_OTHERS: Mapping[str, Callable[[HostView], list[Any]]] = {
    "aggregates": lambda hosts: list(hosts.aggregates()),
    "instances": lambda hosts: [dict.fromkeys(uuids) for uuids in hosts.instances()],
    "metrics": lambda hosts: [dict(facts.metrics) for facts in hosts.all_facts()],
    "numa_topology": lambda hosts: [topology_for(facts) for facts in hosts.all_facts()],
    "pci_stats": lambda hosts: [pools_of(facts) for facts in hosts.all_facts()],
    "allocation_candidates": lambda hosts: [[] for _ in range(len(hosts))],
    "service": lambda hosts: [
        {"disabled": facts.is_disabled, "forced_down": facts.is_forced_down, "last_seen_up": facts.reported_at_s}
        for facts in hosts.all_facts()
    ],
}


def rows_of(hosts: HostView) -> list[HostRow]:
    """Return every host of a view as an object."""
    table = _Table(hosts)
    return [HostRow(table, position) for position in range(len(hosts))]


def _request_spec(hosts: HostView, spec: Spec) -> RequestSpec:
    wanted = RequestSpec.from_request(spec.request, spec.group, pci_requests=spec.pci_requests)
    wanted.instance_uuid = spec.moved_uuid
    if spec.group is not None:
        with_members = np.flatnonzero(hosts.members(spec.group)).tolist()
        names = hosts.names()
        wanted.instance_group = InstanceGroup(
            uuid=spec.group.uuid,
            policy=spec.group.policy,
            members=hosts.instances_of(spec.group),
            hosts=[names[position] for position in with_members],
            rules={"max_server_per_host": spec.group.limit},
        )
    return wanted


def extra_spec_problem(name: str, value: str) -> str:
    """Return what is wrong with an extra spec, by the validators there are; nothing where it is right."""
    # Most processes meet no extra spec, and need not load what is known of them.
    from roost.compat.api.validation.extra_specs.validators import problem_of

    return problem_of(name, value)
