"""What Nova has in ``nova.scheduler.filters``: the base of host filters, and every filter under Nova's name."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from roost.compat import filters
from roost.compat.objects import as_request_spec
from roost.compat.scheduler.host_list import HostList, spec_for
from roost.compat.scheduler.host_state import HostState
from roost.scheduler.plugins import RuleClass, builtin_filters


class BaseHostFilter(filters.BaseFilter):
    """Base of a filter over hosts: override ``host_passes`` and nothing else."""

    RUN_ON_REBUILD = False

    def _filter_one(self, obj: Any, spec_obj: Any) -> bool:
        """Say whether a host passes; at a check for a rebuild most filters do not look."""
        is_rebuild_check = as_request_spec(spec_obj).is_rebuild_check
        return (is_rebuild_check and not self.RUN_ON_REBUILD) or bool(self.host_passes(obj, spec_obj))

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Say whether a host passes."""
        raise NotImplementedError


class RuleFilter(BaseHostFilter):
    """One of our filters, over host states."""

    rule_class: RuleClass

    def __init__(self, options: msgspec.Struct | None = None) -> None:
        self._rule = self.rule_class(options or self.rule_class.options())

    def filter_all(self, filter_obj_list: Iterable[Any], spec_obj: Any) -> Iterable[Any]:
        """Return the hosts that pass."""
        states: list[HostState] = list(filter_obj_list)
        wanted = as_request_spec(spec_obj)
        if wanted.is_rebuild_check and not self.RUN_ON_REBUILD:
            return states
        spec = spec_for(wanted, states)
        if not states or not self._rule.concerns(spec):
            return states
        verdicts = self._rule.keep(HostList(states), spec).tolist()
        return [host for host, passes in zip(states, verdicts, strict=True) if passes]

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Say whether one host passes."""
        return bool(list(self.filter_all([host_state], spec_obj)))


class CandidateFilterMixin:
    """Narrows the allocation candidates of a host."""

    def filter_candidates(self, host_state: HostState, func: Callable[[Any], Any]) -> list[Any]:
        """Keep only the candidates for which ``func`` says yes; return them."""
        host_state.allocation_candidates = [each for each in host_state.allocation_candidates if func(each)]
        return host_state.allocation_candidates


class HostFilterHandler(filters.BaseFilterHandler):
    """Runs host filters."""

    def get_all_classes(self) -> list[type[BaseHostFilter]]:
        """Return all filters there are."""
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


_OURS = {made.__name__: made for made in map(_over_host_states, builtin_filters())}

AllHostsFilter = _OURS["AllHostsFilter"]
ComputeFilter = _OURS["ComputeFilter"]
ComputeCapabilitiesFilter = _OURS["ComputeCapabilitiesFilter"]
FaultDomainFilter = _OURS["FaultDomainFilter"]
ImagePropertiesFilter = _OURS["ImagePropertiesFilter"]
ServerGroupAntiAffinityFilter = _OURS["ServerGroupAntiAffinityFilter"]
ServerGroupAffinityFilter = _OURS["ServerGroupAffinityFilter"]


def filter_for(rule: RuleClass) -> type[RuleFilter]:
    """Return the class that runs one of our filters over host states."""
    return next((made for made in _OURS.values() if made.rule_class is rule), None) or _over_host_states(rule)


def all_filters() -> list[type[BaseHostFilter]]:
    """Return every filter of this package, those that Nova has removed included."""
    from roost.compat.scheduler.filters import core_filter, disk_filter, num_instances_filter, ram_filter

    historic = [
        made
        for module in (core_filter, disk_filter, num_instances_filter, ram_filter)
        for name, made in vars(module).items()
        if name.endswith("Filter") and not name.startswith(("Base", "_")) and made.__module__ == module.__name__
    ]
    return [*_OURS.values(), *historic]
