"""Who may do what: policies, their defaults, and what a file says instead."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from roost.api.access import policy_rules
from roost.api.access.policy_rules import BadRule, Judge, Rule, Target
from roost.api.http import Identity
from roost.errors import BadSettings

_VERBS: Mapping[str, tuple[str, ...]] = {
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
# In the order in which they are shown.
_NAMES = dict.fromkeys(
    f"placement:{thing}:{verb}" if verb else f"placement:{thing}"
    for thing, verbs in _VERBS.items()
    for verb in verbs or ("",)
)
_BASE: Mapping[str, str] = {
    "admin_api": "role:admin",
    "service_api": "role:service",
    "admin_or_service_api": "rule:admin_api or rule:service_api",
    "project_reader_api": "role:reader and project_id:%(project_id)s",
    "admin_or_project_reader_or_service_api": "rule:admin_api or rule:project_reader_api or rule:service_api",
}
# Of these the legacy defaults let an administrator do all that the others may.
_LEGACY: Mapping[str, str] = {
    "service_api": "role:service or role:admin",
    "project_reader_api": "(role:reader and project_id:%(project_id)s) or role:admin",
}
_SPECIAL: Mapping[str, str] = {
    "placement:usages": "rule:admin_or_project_reader_or_service_api",
    "placement:reshaper:reshape": "rule:service_api",
}
# Names that policy files of older releases hold, and what took their place.
_DEPRECATED: Mapping[str, str] = {
    "system_admin_api": "admin_or_service_api",
    "system_reader_api": "admin_or_service_api",
    "system_or_project_reader_api": "admin_or_project_reader_or_service_api",
}

_REFERENCES_MAX = 50
_NONE: Mapping[str, str] = {}


class EffectiveRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule as it is in force."""

    name: str
    rule: str
    source: str  # "default", "legacy default", or the file that says so


class Policy:
    """Every rule in force.

    Args:
        overrides: rules that are not as by default, by name.
        origin: the file that says so.
        is_legacy: whether the legacy defaults hold, under which an administrator may reshape.
        others: defaults of another API, by name; they may refer to rules of this one.

    Raises:
        BadSettings: a rule cannot be understood, or refers to one that is not there or to itself.
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
        self.warnings = tuple(_warnings(overrides, origin, defaults=defaults, parsed=parsed))

    def allows(self, name: str, who: Identity, target: Target) -> bool:
        """Say whether somebody may do what a policy names.

        Nobody may use the Placement API with a token for the whole system: each operation there is of the scope of a
        project.

        Args:
            name: of the policy.
            who: asks.
            target: is acted on, such as the project whose usages are asked for.
        """
        return not (who.is_system_scoped and name in _NAMES) and self._judges[name](who, target)

    def _judge(self, rule: Rule) -> Judge:
        judge, judges = rule.judge, self._judges
        return lambda who, target: judge(who, target, judges)


def read_policy(path: Path | None, *, is_legacy: bool = False, others: Mapping[str, str] = _NONE) -> Policy:
    """Return the rules in force: the defaults, and what a file says instead.

    Args:
        path: of a YAML or JSON file with rules by name; None: none.
        is_legacy, others: see ``Policy``.

    Raises:
        BadSettings: the file cannot be read or understood.
    """
    if path is None:
        return Policy(is_legacy=is_legacy, others=others)
    import yaml

    try:
        document: Any = yaml.safe_load(path.read_bytes())
    except FileNotFoundError:
        text = "is not there, and nobody knows which policies it was to hold; for the defaults leave out policy_file"
        raise BadSettings(str(path), text) from None
    except OSError as error:
        raise BadSettings(str(path), f"cannot be read: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadSettings(str(path), f"is neither YAML nor JSON: {' '.join(str(error).split())}") from None
    if document is None:
        return Policy(is_legacy=is_legacy, others=others)
    if not isinstance(document, dict):
        raise BadSettings(str(path), "must hold rules by name")
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
    """Refuse rules that refer to nothing, or in a circle."""
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            raise BadSettings(sources[name], f"{name}: the rule refers to itself by way of {', '.join(way)}")
        if name in done:
            return
        if len(way) > _REFERENCES_MAX:
            raise BadSettings(
                sources[name], f"{name}: rules refer to each other over more than {_REFERENCES_MAX} steps"
            )
        for other in sorted(parsed[name].refers):
            if other not in parsed:
                raise BadSettings(sources[name], f"{name}: the rule refers to {other!r}, which is not there")
            visit(other, (*way, name))
        done.add(name)

    for name in parsed:
        visit(name, ())


def _warnings(
    overrides: Mapping[str, str], origin: str, *, defaults: Mapping[str, str], parsed: Mapping[str, Rule]
) -> Iterable[str]:
    used = frozenset[str]().union(*(rule.refers for rule in parsed.values()))
    for name in overrides:
        if name in _DEPRECATED:
            yield f"{origin}: {name} is deprecated: nothing but rules of this file uses it; see {_DEPRECATED[name]}"
        elif name not in defaults and name not in used:
            yield f"{origin}: {name} is no policy here, and no rule refers to it: it has no effect"
