"""Policies of the Placement API: defaults, and overrides of a file."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from roost.api.access import policy_rules
from roost.api.access.policy_rules import BadRule, Judge, Rule, Target
from roost.api.http import Identity
from roost.errors import BadSettings, SettingsMissing, unreadable_settings

_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "resource_providers": ("list", "create", "show", "update", "delete"),
    "resource_classes": ("list", "create", "show", "update", "delete"),
    "resource_providers:inventories": ("list", "create", "show", "update", "delete"),
    "resource_providers:aggregates": ("list", "update"),
    "resource_providers:usages": (),
    "usages": (),
    "traits": ("list", "show", "update", "delete"),
    "resource_providers:traits": ("list", "update", "delete"),
    "allocations": ("list", "manage", "update", "delete"),
    "resource_providers:allocations": ("list",),
    "allocation_candidates": ("list",),
    "reshaper": ("reshape",),
}
# In the order of their display.
_NAMES = dict.fromkeys(
    f"placement:{resource}:{action}" if action else f"placement:{resource}"
    for resource, actions in _ACTIONS.items()
    for action in actions or ("",)
)
_BASE: Mapping[str, str] = {
    "admin_api": "role:admin",
    "service_api": "role:service",
    "admin_or_service_api": "rule:admin_api or rule:service_api",
    "project_reader_api": "role:reader and project_id:%(project_id)s",
    "admin_or_project_reader_or_service_api": "rule:admin_api or rule:project_reader_api or rule:service_api",
}
# Legacy defaults: an administrator has the rights of these roles.
_LEGACY: Mapping[str, str] = {
    "service_api": "role:service or role:admin",
    "project_reader_api": "(role:reader and project_id:%(project_id)s) or role:admin",
}
_SPECIAL: Mapping[str, str] = {
    "placement:usages": "rule:admin_or_project_reader_or_service_api",
    "placement:reshaper:reshape": "rule:service_api",
}
# Names in policy files of older releases, and their successors.
_DEPRECATED: Mapping[str, str] = {
    "system_admin_api": "admin_or_service_api",
    "system_reader_api": "admin_or_service_api",
    "system_or_project_reader_api": "admin_or_project_reader_or_service_api",
}

_REFERENCES_MAX = 50
_NONE: Mapping[str, str] = {}


_ROLE = re.compile(r"\brole:([\w-]+)")


class EffectiveRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule in force."""

    name: str
    rule: str
    source: str  # "default", "legacy default", or the path of the file


class Policy:
    """All rules in force. ``roles`` has their roles.

    Args:
        overrides: rules that replace defaults, by name.
        origin: path of the file with the overrides.
        is_legacy: whether the legacy defaults apply; they allow an administrator to reshape.
        others: defaults of another API, by name; they may refer to rules of the Placement API.

    Raises:
        BadSettings: a rule is invalid, or refers to a missing rule or to itself.
    """

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        *,
        origin: str = "",
        is_legacy: bool = False,
        others: Mapping[str, str] = _NONE,
    ) -> None:
        overrides = overrides or {}
        defaults = {**_BASE, **{name: _SPECIAL.get(name, "rule:admin_or_service_api") for name in _NAMES}, **others}
        self.table = tuple(_merge_rules(overrides, origin, defaults=defaults, is_legacy=is_legacy))
        parsed = {each.name: _parse(each, origin) for each in self.table}
        _check_references(parsed, {each.name: each.source for each in self.table})
        self._judges: dict[str, Judge] = {}
        for name, rule in parsed.items():
            self._judges[name] = self._judge(rule)
        self.roles = tuple(sorted({role for each in self.table for role in _ROLE.findall(each.rule)}))
        self.warnings = tuple(_warnings(overrides, origin, defaults=defaults, parsed=parsed))

    def allows(self, name: str, identity: Identity, target: Target) -> bool:
        """Return whether a policy allows a client to act on a target.

        A system-scoped token has no access to the Placement API: all operations of this API have project scope.

        Args:
            name: of the policy.
            identity: of the client.
            target: attributes of the target, such as the project of requested usages.
        """
        return not (identity.is_system_scoped and name in _NAMES) and self._judges[name](identity, target)

    def _judge(self, rule: Rule) -> Judge:
        judge, judges = rule.judge, self._judges
        return lambda identity, target: judge(identity, target, judges)


def read_policy(path: Path | None, *, is_legacy: bool = False, others: Mapping[str, str] = _NONE) -> Policy:
    """Return the rules in force: the defaults, and the overrides of a file.

    Args:
        path: of a YAML or JSON file with rules by name; None: no overrides.
        is_legacy, others: see ``Policy``.

    Raises:
        BadSettings: the file is unreadable or invalid.
    """
    if path is None:
        return Policy(is_legacy=is_legacy, others=others)
    import yaml

    try:
        document: Any = yaml.safe_load(path.read_bytes())
    except FileNotFoundError:
        text = "does not exist; correct the path; to use the defaults, omit policy_file"
        raise SettingsMissing(str(path), text) from None
    except OSError as error:
        raise unreadable_settings(str(path), error) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadSettings(str(path), f"is neither YAML nor JSON: {' '.join(str(error).split())}") from None
    if document is None:
        return Policy(is_legacy=is_legacy, others=others)
    if not isinstance(document, dict):
        raise BadSettings(str(path), "must be a mapping of names to rules")
    for name, rule in document.items():
        if not isinstance(name, str) or not isinstance(rule, str):
            raise BadSettings(str(path), f"{name}: the rule must be a text, got {rule!r}")
    return Policy(document, origin=str(path), is_legacy=is_legacy, others=others)


def _merge_rules(
    overrides: Mapping[str, str], origin: str, *, defaults: Mapping[str, str], is_legacy: bool
) -> Iterable[EffectiveRule]:
    for name, text in defaults.items():
        if name in overrides:
            yield EffectiveRule(name=name, rule=overrides[name], source=origin)
        elif is_legacy and name in _LEGACY:
            yield EffectiveRule(name=name, rule=_LEGACY[name], source="legacy default")
        else:
            yield EffectiveRule(name=name, rule=text, source="default")
    for name, text in overrides.items():
        if name not in defaults:
            yield EffectiveRule(name=name, rule=text, source=origin)


def _parse(each: EffectiveRule, origin: str) -> Rule:
    try:
        return policy_rules.parse(each.rule)
    except BadRule as error:
        raise BadSettings(origin, f"{each.name}: {error}") from None


def _check_references(parsed: Mapping[str, Rule], sources: Mapping[str, str]) -> None:
    """Refuse missing and circular references."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise BadSettings(sources[name], f"{name}: the rule refers to itself through {', '.join(path)}")
        if name in done:
            return
        if len(path) > _REFERENCES_MAX:
            raise BadSettings(sources[name], f"{name}: a chain of references has more than {_REFERENCES_MAX} steps")
        for other in sorted(parsed[name].references):
            if other not in parsed:
                raise BadSettings(sources[name], f"{name}: the rule refers to {other!r}, which does not exist")
            visit(other, (*path, name))
        done.add(name)

    for name in parsed:
        visit(name, ())


def _warnings(
    overrides: Mapping[str, str], origin: str, *, defaults: Mapping[str, str], parsed: Mapping[str, Rule]
) -> Iterable[str]:
    used = frozenset[str]().union(*(rule.references for rule in parsed.values()))
    for name in overrides:
        if name in _DEPRECATED:
            yield f"{origin}: {name} is deprecated and affects only rules of this file; override {_DEPRECATED[name]}"
        elif name not in defaults and name not in used:
            yield f"{origin}: {name} is not a policy, and no rule refers to it: it has no effect"
