"""Counterpart of ``nova.scheduler.filters``: the base of host filters, and all filters under Nova's names.

``core_filter``: enough virtual CPUs.
``ram_filter``: enough memory.
``disk_filter``: enough disk.
``num_instances_filter``: fewer instances than a limit.
``extra_specs_ops``: operators of extra specs.
``aggregate_values``: Nova's ``utils``: aggregates and instances of a host.
"""

import logging
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Protocol

import msgspec
import numpy as np

from roost.compat import filters
from roost.compat.config_view import options_of
from roost.compat.objects import RequestSpec, as_request_spec
from roost.compat.scheduler.host_list import HostList, spec_for
from roost.compat.scheduler.host_state import HostState, mappings_of
from roost.compat.scheduler.module_table import FILTER_MODULES, place_modules
from roost.engine.columns.types import Mask
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import (
    JudgesCandidates,
    SupportsLimits,
    SupportsRequestCheck,
    SupportsWarnings,
    implements,
)
from roost.scheduler.framework.spec import Spec
from roost.scheduler.registry import RuleClass, builtin_filters
from roost.scheduler.rule_support.limits import BelowLimit
from roost.scheduler.rule_support.overcommit import OvercommitFilter

_log = logging.getLogger(__name__)


class BaseHostFilter(filters.BaseFilter):
    """Base of a filter of hosts; override ``host_passes`` only."""

    RUN_ON_REBUILD = False

    def _filter_one(self, obj: Any, spec_obj: Any) -> bool:
        """Return whether a host passes. For a rebuild check, only filters with ``RUN_ON_REBUILD`` run."""
        is_rebuild_check = as_request_spec(spec_obj).is_rebuild_check
        return (is_rebuild_check and not self.RUN_ON_REBUILD) or bool(self.host_passes(obj, spec_obj))

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Return whether a host passes."""
        raise NotImplementedError


class Judge(Protocol):
    """The methods of a filter needed to judge hosts."""

    def concerns(self, spec: Spec) -> bool:
        """Return whether any host can be refused."""

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Return the verdicts: bool, shape (len(hosts),)."""


class RuleFilter(BaseHostFilter):
    """A filter of Roost, over host states."""

    rule_class: RuleClass

    def __init__(self, options: msgspec.Struct | None = None) -> None:
        self._rule: Judge = self.rule_class(options or options_of(self.rule_class))

    def filter_all(self, filter_obj_list: Iterable[Any], spec_obj: Any) -> Iterable[Any]:
        """Return the hosts that pass, with the filter's limits set on them.

        Raises:
            BadRequest: the request is invalid for the filter.
        """
        if type(self).host_passes is not RuleFilter.host_passes:  # An override judges each host.
            return [host for host in filter_obj_list if self._filter_one(host, spec_obj)]
        return self._find_passing(filter_obj_list, spec_obj)

    def _find_passing(self, filter_obj_list: Iterable[Any], spec_obj: Any) -> list[Any]:
        states: list[HostState] = list(filter_obj_list)
        request_spec = as_request_spec(spec_obj)
        if request_spec.is_rebuild_check and not self.RUN_ON_REBUILD:
            return states
        spec = spec_for(request_spec, states)
        rule = self._rule_for(states, request_spec)
        if not states or not rule.concerns(spec):
            return states
        if implements(rule, SupportsRequestCheck):
            rule.check(spec)
        hosts = HostList(states)
        if implements(rule, SupportsWarnings):
            for warning in rule.warnings(hosts, spec):
                _log.warning("%s", warning)
        verdicts = rule.keep(hosts, spec).tolist()
        if implements(rule, JudgesCandidates):
            for at in np.flatnonzero(verdicts).tolist():
                states[at].allocation_candidates = [
                    each
                    for each in states[at].allocation_candidates
                    if rule.accepts(hosts, spec, at=at, mappings=mappings_of(each))
                ]
        if implements(rule, SupportsLimits):
            for host, limits, passes in zip(states, rule.limits(hosts, spec), verdicts, strict=True):
                host.limits.update(limits if passes else {})
        return [host for host, passes in zip(states, verdicts, strict=True) if passes]

    def _rule_for(self, states: list[HostState], spec_obj: RequestSpec) -> Judge:
        """Return the rule that judges these hosts."""
        return self._rule

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Return whether one host passes."""
        return bool(self._find_passing([host_state], spec_obj))


class HookedFilter(RuleFilter):
    """A filter of Roost that compares one number per host, such as an overcommit ratio. Subclasses may compute it."""

    rule_name = ""  # name of Roost's filter; empty in a base class
    judge_class: type[BelowLimit] | type[OvercommitFilter]  # judges hosts by one number each
    hook: str  # name of the method: host state, request -> number

    def __init__(self, options: msgspec.Struct | None = None) -> None:
        if options is None and self.rule_name:
            options = options_of(
                next(each.rule_class for each in _BUILT_IN.values() if each.rule_class.name == self.rule_name)
            )
        for name in () if options is None else options.__struct_fields__:
            setattr(self, name, getattr(options, name))

    def _rule_for(self, states: list[HostState], spec_obj: RequestSpec) -> Judge:
        read_number = getattr(self, self.hook)
        return self.judge_class.of_hosts(np.array([read_number(state, spec_obj) for state in states], dtype=np.float64))


class CandidateFilterMixin:
    """Filters the allocation candidates of a host."""

    def filter_candidates(self, host_state: HostState, func: Callable[[Any], Any]) -> list[Any]:
        """Keep and return the candidates accepted by ``func``."""
        host_state.allocation_candidates = [each for each in host_state.allocation_candidates if func(each)]
        return host_state.allocation_candidates


class HostFilterHandler(filters.BaseFilterHandler):
    """Runs host filters."""

    def get_all_classes(self) -> list[type[BaseHostFilter]]:
        """Return all filters."""
        return all_filters()


def _over_host_states(rule: RuleClass) -> type[RuleFilter]:
    name = rule.nova_name or "".join(part.title() for part in rule.name.split("_")) + "Filter"
    attributes: dict[str, Any] = {
        "__doc__": f"The filter ``{rule.name}``, over host states.",
        "__module__": __name__,
        "rule_class": rule,
        "run_filter_once_per_request": getattr(rule, "run_filter_once_per_request", False),
        "RUN_ON_REBUILD": getattr(rule, "run_on_rebuild", False),
    }
    return type(name, (RuleFilter,), attributes)


_BUILT_IN = {filter_class.__name__: filter_class for filter_class in map(_over_host_states, builtin_filters())}


def __getattr__(name: str) -> Any:
    """Return the filter or module with this name in Nova."""
    if name == "utils":
        return import_module(f"{__name__}.aggregate_values")
    match = (
        next((filter_class for filter_class in _classes().values() if filter_class.__name__ == name), None)
        if name in _BUILT_IN
        else None
    )
    if match is None:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return match


def filter_for(rule: RuleClass) -> type[RuleFilter]:
    """Return the class that runs a filter of Roost over host states."""
    return _classes().get(rule) or _over_host_states(rule)


def all_filters() -> list[type[BaseHostFilter]]:
    """Return every filter of this package, including filters that Nova has removed."""
    return list(_classes().values())


def _classes() -> dict[RuleClass, type[RuleFilter]]:
    """Return the class of each filter, preferably a ``HookedFilter``."""
    from roost.compat.scheduler.filters import core_filter, disk_filter, num_instances_filter, ram_filter

    hooked = {
        filter_class.rule_name: filter_class
        for module in (core_filter, disk_filter, num_instances_filter, ram_filter)
        for filter_class in vars(module).values()
        if isinstance(filter_class, type) and issubclass(filter_class, HookedFilter) and filter_class.rule_name
    }
    return {
        filter_class.rule_class: hooked.get(filter_class.rule_class.name, filter_class)
        for filter_class in _BUILT_IN.values()
    }


place_modules(__name__, FILTER_MODULES, _BUILT_IN.__getitem__)
