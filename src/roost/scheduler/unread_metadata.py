"""Metadata of aggregates without a reader among the enabled rules."""

from collections.abc import Iterable

from roost.errors import quote_value
from roost.model.settings.roost_settings import Settings
from roost.scheduler import registry
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.rule_support.scopes import ZONE

# Metadata key -> the filter that reads it.
_FILTER_OF = {
    "cpu_allocation_ratio": "aggregate_core",
    "ram_allocation_ratio": "aggregate_ram",
    "disk_allocation_ratio": "aggregate_disk",
    "max_io_ops_per_host": "aggregate_io_ops",
    "max_instances_per_host": "aggregate_num_instances",
    "instance_type": "aggregate_type_affinity",
}
_RATIOS = frozenset({"cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio"})
# The filter and the setting that read the keys with a prefix.
_TENANT, _TENANT_FILTER = "filter_tenant_id", "aggregate_multi_tenancy_isolation"
_TENANT_SETTING = "limit_tenants_to_placement_aggregate"
_TRAIT, _TRAIT_SETTING = "trait:", "enable_isolated_aggregate_filtering"
# The filters that compare any key with extra specs or image properties.
_ANY_KEY = ("aggregate_instance_extra_specs", "aggregate_image_properties_isolation")


def warn_unread(keys: Iterable[str], rules: Rules, settings: Settings) -> list[str]:
    """Return a sentence for each metadata key without a reader among the enabled rules.

    A rule from a plug-in may read any key, so with one of them there are no warnings.
    """
    enabled = {each.name for each in rules.filters} | {each.name for each in rules.weighers}
    weighers = registry.builtin_weighers()
    own = {each.name for each in (*registry.builtin_filters(), *weighers)}
    if not enabled <= own or not enabled.isdisjoint(_ANY_KEY):
        return []
    multipliers = {str(getattr(each, "aggregate_key", "")): each.name for each in weighers}
    switches = {name for name in (_TENANT_SETTING, _TRAIT_SETTING) if getattr(settings.scheduler, name)}
    warnings = []
    for key in keys:
        readers = _readers(key, multipliers)
        if key == ZONE or not (enabled | switches).isdisjoint(readers):
            continue
        advice = "; to change the capacity of the hosts, change their allocation ratios" if key in _RATIOS else ""
        warnings.append(
            f"no enabled filter or weigher reads metadata {quote_value(key)}; {' or '.join(readers)} would{advice}"
        )
    return warnings


def _readers(key: str, multipliers: dict[str, str]) -> tuple[str, ...]:
    """Return the names of the rules and settings for a key."""
    if key in _FILTER_OF:
        return (_FILTER_OF[key],)
    if key in multipliers:
        return (multipliers[key],)
    if key.startswith(_TENANT):
        return _TENANT_FILTER, _TENANT_SETTING
    if key.startswith(_TRAIT):
        return (_TRAIT_SETTING,)
    return _ANY_KEY
