"""compute_capabilities: hosts whose facts match the flavor's extra specs."""

import json
from collections.abc import Hashable, Iterator

import numpy as np

from roost.engine.columns.types import Mask
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_attributes import DYNAMIC, FACTS, NAMES, RATIOS, STATIC, is_attribute
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.memoize import Latest
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.operators import impossible_reason, match_numbers, matches, operator_without_blank

_ADDRESS_BITS = "hw:maxphysaddr_bits"
_GROUP_POLICY = "group_policy"  # Belongs to Placement; no host has such a capability.


class ComputeCapabilities(BaseFilter[NoOptions]):
    """Keep hosts that match every required capability.

    Capabilities are extra specs ``capabilities:…``, and those without a scope if the host has a value of this name.
    See ``roost.scheduler.rule_support.operators`` for the operators. A value that is not a number fails a numeric
    requirement and rejects only its host; in Nova the whole request fails.

    Source:
        nova/scheduler/filters/compute_capabilities_filter.py.
    """

    nova_name = "ComputeCapabilitiesFilter"
    run_filter_once_per_request = True

    def __init__(self, options: NoOptions) -> None:
        super().__init__(options)
        self._requirements = Latest(_requirements)

    def reads(self, spec: Spec) -> Reads:
        """Return "use" if a required value changes with claims, else "facts"."""
        reads_use = any(path[0] in DYNAMIC for path, _, _ in self._requirements(spec.flavor))
        return "use" if reads_use else "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return whether any extra spec may be a capability."""
        return bool(self._requirements(spec.flavor))

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: the requirements."""
        return tuple(
            (*path, requirement, is_scoped) for path, requirement, is_scoped in self._requirements(spec.flavor)
        )

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts that match every requirement."""
        verdicts: Mask | None = None
        for path, requirement, is_scoped in self._requirements(spec.flavor):
            verdict = _judge(hosts, path, requirement=requirement, is_scoped=is_scoped)
            verdicts = verdict if verdicts is None else verdicts & verdict
        return np.ones(len(hosts), dtype=np.bool_) if verdicts is None else verdicts

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Return each host's value for the first requirement it fails."""
        reasons = [""] * len(hosts)
        for path, requirement, is_scoped in self._requirements(spec.flavor):
            mismatches = ~_judge(hosts, path, requirement=requirement, is_scoped=is_scoped)
            values = _values(hosts, path)
            for at in np.flatnonzero(mismatches).tolist():
                has = "nothing" if values[at] is None else str(values[at])
                reasons[at] = reasons[at] or f"has {has} for {':'.join(path)}, required is {requirement}"
        return reasons

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn about impossible requirements, and about operators without a blank after them."""
        texts = []
        for key, value in _capability_specs(spec.flavor):
            problem, operator = impossible_reason(_requirement(key, value)), operator_without_blank(value)
            if problem:
                texts.append(f"extra spec {key}={value!r} rejects all hosts to which it applies: {problem}")
            elif operator:
                texts.append(f"extra spec {key}={value!r} is compared as text: {operator} needs a blank after it")
        return texts

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        requirements = "; ".join(
            f"{':'.join(path)} {requirement}" for path, requirement, _ in self._requirements(spec.flavor)
        )
        return f"lack a capability of: {requirements}"


def _requirements(flavor: Flavor) -> list[tuple[list[str], str, bool]]:
    """Return path, requirement and whether the extra spec has a scope, for each capability.

    A requirement without a scope applies only to hosts with a value of its name, because other rules also read extra
    specs without a scope.
    """
    requirements: list[tuple[list[str], str, bool]] = []
    for key, value in _capability_specs(flavor):
        scope, *path = key.split(":")
        if key == _ADDRESS_BITS:
            requirements.append((["cpu_info", "maxphysaddr", "bits"], _requirement(key, value), True))
        elif path:
            requirements.append((path, value, True))
        else:
            requirements.append(([scope], value, False))
    return requirements


def _capability_specs(flavor: Flavor) -> Iterator[tuple[str, str]]:
    """Yield the extra specs for this filter, unchanged."""
    for key, value in flavor.extra_specs.items():
        scope, colon, _ = key.partition(":")
        if key == _ADDRESS_BITS or (key != _GROUP_POLICY and (not colon or scope == "capabilities")):
            yield key, value


def _requirement(key: str, value: str) -> str:
    return f">= {value}" if key == _ADDRESS_BITS else value


def _judge(hosts: HostView, path: list[str], *, requirement: str, is_scoped: bool) -> Mask:
    name = path[0]
    for table, are_whole in ((DYNAMIC, True), (STATIC, True), (RATIOS, False)):
        if name in table:
            if len(path) > 1:
                # A number has no attributes.
                return np.zeros(len(hosts), dtype=np.bool_)
            return match_numbers(table[name](hosts), requirement, are_whole=are_whole)
    # The values may differ on every host; comparing them at each claim would be too slow.
    key = (ComputeCapabilities.name, *path, requirement, is_scoped)
    return hosts.memoize(
        key, lambda all_hosts: _match_facts(all_hosts, path, requirement=requirement, is_scoped=is_scoped)
    )


def _values(hosts: HostView, path: list[str]) -> list[object]:
    """Return each host's value at a path, None if the path does not exist."""
    name = path[0]
    for table, are_whole in ((DYNAMIC, True), (STATIC, True), (RATIOS, False)):
        if name in table:
            numbers = table[name](hosts).tolist() if len(path) == 1 else [None] * len(hosts)
            return [int(number) if are_whole and number is not None else number for number in numbers]
    if name in NAMES:
        return [_follow_path(value, path[1:]) for value in NAMES[name](hosts)]
    return [_follow_path(_fact(facts, name), path[1:]) for facts in hosts.all_facts()]


def _match_facts(hosts: HostView, path: list[str], *, requirement: str, is_scoped: bool) -> Mask:
    name = path[0]
    if name in NAMES:
        return np.array(
            [_matches(_follow_path(each, path[1:]), requirement) for each in NAMES[name](hosts)], dtype=np.bool_
        )
    values, codes = hosts.distinct_values(
        (ComputeCapabilities.name, name), lambda facts: (_fact(facts, name), name in facts.stats)
    )
    may_lack = not is_scoped and not is_attribute(name)
    verdicts = [
        (may_lack and not has_statistic) or _matches(_follow_path(value, path[1:]), requirement)
        for value, has_statistic in values
    ]
    mask: Mask = np.array(verdicts, dtype=np.bool_)[codes]
    return mask


def _matches(value: object, requirement: str) -> bool:
    if value is None:
        return False
    # Nova stores a table of facts as JSON text, and compares this text.
    return matches(json.dumps(value) if isinstance(value, dict) else str(value), requirement)


def _fact(facts: HostFacts, name: str) -> object:
    """Return a host's fact of this name, else its statistic."""
    read = FACTS.get(name)
    value = None if read is None else read(facts)
    return facts.stats.get(name) if value is None else value


def _follow_path(value: object, path: list[str]) -> object:
    """Return the value at a path below a value; None if the path does not exist."""
    for name in path:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return None
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
