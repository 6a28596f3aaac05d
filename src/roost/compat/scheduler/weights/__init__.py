"""Counterpart of ``nova.scheduler.weights``: the base of host weighers, and all weighers under Nova's names."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from roost.compat import weights
from roost.compat.config_view import options_of
from roost.compat.objects import as_request_spec
from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.host_list import HostList, spec_for
from roost.compat.scheduler.host_state import HostState
from roost.compat.scheduler.module_table import WEIGHER_MODULES, place_modules
from roost.compat.weights import WeighedObject
from roost.engine.columns.types import Scores
from roost.engine.ranking import ranks
from roost.scheduler.framework.plugin import Weigher
from roost.scheduler.registry import RuleClass, builtin_weighers
from roost.scheduler.rule_support.ratios import parse_finite
from roost.scheduler.shape.score_table import check_weighable


class WeighedHost(WeighedObject):
    """A host and its weight."""

    def to_dict(self) -> dict[str, Any]:
        """Return name and weight."""
        return {"weight": self.weight, "host": self.obj.host}


class BaseHostWeigher(weights.BaseWeigher):
    """Base of a weigher of hosts; override ``weight_multiplier`` and ``_weigh_object``."""


class RuleWeigher(BaseHostWeigher):
    """A weigher of Roost, over host states."""

    rule_class: RuleClass

    def __init__(self, options: msgspec.Struct | None = None) -> None:
        self._rule: Weigher = self.rule_class(options or options_of(self.rule_class))

    def weight_multiplier(self, host_state: Any = None) -> float:
        """Return the multiplier set by the host's aggregates, else by the settings."""
        rule = self._rule
        if host_state is None:
            return rule.multiplier
        value = number_from(host_state, rule.aggregate_key, default=math.nan, cast_to=parse_finite)
        return rule.sign * value if math.isfinite(value) else rule.multiplier

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        return float(self._raw([obj], weight_properties)[0])

    def weigh_objects(self, weighed_obj_list: Sequence[WeighedObject], weight_properties: Any) -> list[float]:
        """Return the raw weights of all hosts, within the weigher's bounds."""
        raw = self._raw([each.obj for each in weighed_obj_list], weight_properties)
        bounded: list[float] = ranks.clamp(raw, minval=self.minval, maxval=self.maxval).tolist()
        return bounded

    def _raw(self, states: list[HostState], weight_properties: Any) -> Scores:
        spec = spec_for(as_request_spec(weight_properties), states)
        if not self._rule.concerns(spec):
            return np.zeros(len(states), dtype=np.float64)
        hosts = HostList(states)
        raw = self._rule.raw(hosts, spec)
        check_weighable(self._rule, raw, hosts=hosts, spec=spec)
        return raw


class HostWeightHandler(weights.BaseWeightHandler):
    """Runs host weighers."""

    object_class = WeighedHost

    def get_all_classes(self) -> list[type[BaseHostWeigher]]:
        """Return all weighers."""
        return all_weighers()


def _over_host_states(rule: RuleClass) -> type[RuleWeigher]:
    attributes: dict[str, Any] = {
        "__doc__": f"The weigher ``{rule.name}``, over host states.",
        "__module__": __name__,
        "rule_class": rule,
        "minval": getattr(rule, "minval", None),
        "maxval": getattr(rule, "maxval", None),
    }
    return type(rule.nova_name or f"{rule.name}Weigher", (RuleWeigher,), attributes)


_BUILT_IN = {rule.nova_name: _over_host_states(rule) for rule in builtin_weighers() if rule.nova_name}

BuildFailureWeigher = _BUILT_IN["BuildFailureWeigher"]
CPUWeigher = _BUILT_IN["CPUWeigher"]
CrossCellWeigher = _BUILT_IN["CrossCellWeigher"]
DiskWeigher = _BUILT_IN["DiskWeigher"]
HypervisorVersionWeigher = _BUILT_IN["HypervisorVersionWeigher"]
ImagePropertiesWeigher = _BUILT_IN["ImagePropertiesWeigher"]
IoOpsWeigher = _BUILT_IN["IoOpsWeigher"]
MetricsWeigher = _BUILT_IN["MetricsWeigher"]
NumInstancesWeigher = _BUILT_IN["NumInstancesWeigher"]
PCIWeigher = _BUILT_IN["PCIWeigher"]
RAMWeigher = _BUILT_IN["RAMWeigher"]
ServerGroupSoftAffinityWeigher = _BUILT_IN["ServerGroupSoftAffinityWeigher"]
ServerGroupSoftAntiAffinityWeigher = _BUILT_IN["ServerGroupSoftAntiAffinityWeigher"]


def weigher_for(rule: RuleClass) -> type[RuleWeigher]:
    """Return the class that runs a weigher of Roost over host states."""
    return next(
        (weigher_class for weigher_class in _BUILT_IN.values() if weigher_class.rule_class is rule), None
    ) or _over_host_states(rule)


def all_weighers() -> list[type[BaseHostWeigher]]:
    """Return Nova's weighers; Roost's native ones are not part of Nova's package."""
    return list(_BUILT_IN.values())


place_modules(__name__, WEIGHER_MODULES, _BUILT_IN.__getitem__)
