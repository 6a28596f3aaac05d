"""The available rules: built-in ones, those of entry points, and those named by path in the settings."""

import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from roost.errors import BadSettings, quote_value
from roost.model.settings.roost_settings import FilterScheduler, Settings
from roost.scheduler import filters, weighers
from roost.scheduler.framework.hint_names import HintNames
from roost.scheduler.framework.plugin import Filter, Rules, Weigher
from roost.scheduler.framework.rule_options import read_section
from roost.scheduler.framework.sandbox import sandbox_filter, sandbox_weigher

_AVAILABLE = "filter_scheduler.available_filters"
_ENABLED = "filter_scheduler.enabled_filters"
_WEIGHTS = "filter_scheduler.weight_classes"
_ADVICE = "keep third-party rules in a package of their own, and name it in filter_scheduler.available_filters"
_COMPUTE = "compute"  # the filter for enabled hosts that are up


class RuleClass(Protocol):
    """The common attributes of filter classes and weigher classes."""

    name: ClassVar[str]
    nova_name: ClassVar[str]
    section: ClassVar[str]
    options: ClassVar[type[msgspec.Struct]]

    def __call__(self, options: Any) -> Any:
        """Create the rule from its options."""


# Wraps a foreign class, such as one written for Nova, as a rule class; None if it cannot.
Adapt = Callable[[type], RuleClass | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The rules that ``catalogue`` finds: Roost's own and third-party ones."""

    filters: tuple[RuleClass, ...]  # available
    weighers: tuple[RuleClass, ...]  # in use, in order
    configurable: tuple[RuleClass, ...]  # all rules with options in the settings


def builtin_filters() -> tuple[RuleClass, ...]:
    """Return Roost's own filters, ordered by name."""
    return _scan(filters)


def builtin_weighers() -> tuple[RuleClass, ...]:
    """Return Roost's own weighers, ordered by name."""
    return _scan(weighers)


def catalogue(settings: FilterScheduler, *, adapt: Adapt | None = None) -> Catalogue:
    """Find all rules: built-in ones, entry points ``roost.filters`` and ``roost.weighers``, and those named by path.

    Args:
        settings: names the available rules.
        adapt: wraps foreign classes.

    Raises:
        BadSettings: a path does not exist, or is not a rule.
    """
    ours = (*builtin_filters(), *_entries("roost.filters"))
    available = [rule for path in settings.available_filters for rule in _find_filters(path, ours, adapt)]
    weights = (*builtin_weighers(), *_entries("roost.weighers"))
    chosen = [rule for path in settings.weight_classes for rule in _find_weighers(path, weights, adapt)]
    return Catalogue(
        filters=_unique(available),
        weighers=_unique(chosen),
        configurable=_unique([*ours, *weights, *available, *chosen]),
    )


def build(settings: Settings, *, adapt: Adapt | None = None) -> Rules:
    """Create the enabled rules; third-party rules run in the sandbox.

    The chance driver uses only the filter for hosts that are up, and no weighers.

    Raises:
        BadSettings: an enabled filter is unknown (the error names all unknown filters), an option is invalid, or a
            rule cannot be created.
    """
    available, builtin = catalogue(settings.filter_scheduler, adapt=adapt), builtin_filters()
    enabled = select_filters(available, settings.filter_scheduler)
    weights = available.weighers
    if settings.scheduler.driver == "chance":
        enabled, weights = tuple(rule for rule in builtin if rule.name == _COMPUTE), ()
    limit_s, refuses = settings.scheduler.plugin_timeout_s, settings.scheduler.plugin_failure
    own = {*builtin, *builtin_weighers()}
    enabled_filters: list[Filter] = []
    for rule in enabled:
        filter_: Filter = _create_rule(rule, settings)
        enabled_filters.append(filter_ if rule in own else sandbox_filter(filter_, limit_s=limit_s, refuses=refuses))
    enabled_weighers: list[Weigher] = []
    for rule in weights:
        weigher: Weigher = _create_rule(rule, settings)
        if rule not in own:
            weigher, failure_filter = sandbox_weigher(weigher, limit_s=limit_s, refuses=refuses)
            enabled_filters.append(failure_filter)
        enabled_weighers.append(weigher)
    hints = _hint_names((*enabled, *weights), builtin=builtin, own=own)
    return Rules(filters=tuple(enabled_filters), weighers=tuple(enabled_weighers), hints=hints)


def _hint_names(enabled: Iterable[RuleClass], *, builtin: Iterable[RuleClass], own: Collection[RuleClass]) -> HintNames:
    """Return the hints of the enabled rules and of all built-in filters."""
    # A class written for Nova may use the name for something else.
    declared = {rule: hints if isinstance(hints := getattr(rule, "hints", None), tuple) else None for rule in enabled}
    return HintNames(
        enabled=frozenset(hint for hints in declared.values() for hint in hints or ()),
        idle={hint: rule.name for rule in builtin for hint in getattr(rule, "hints", ())},
        is_complete=all(rule in own or hints is not None for rule, hints in declared.items()),
    )


def _create_rule(rule: RuleClass, settings: Settings) -> Any:
    options = options_of(rule, settings.tables)
    # A rule that needs settings beyond its options has the method ``of_settings``.
    of_settings = getattr(rule, "of_settings", None)
    try:
        return rule(options) if of_settings is None else of_settings(options, settings)
    except BadSettings:
        raise
    except (Exception, SystemExit) as error:  # A third-party rule may raise anything.
        raise BadSettings(f"rule {rule.name}", f"cannot be created: {error}") from error


def select_filters(available: Catalogue, settings: FilterScheduler) -> tuple[RuleClass, ...]:
    """Return the enabled filters, in the order of the settings, each once."""
    by_name = {name: rule for rule in available.filters for name in (rule.name, rule.nova_name) if name}
    unknown = [name for name in settings.enabled_filters if name not in by_name]
    if unknown:
        raise BadSettings(_ENABLED, f"Scheduler Host Filter {', '.join(unknown)} could not be found.")
    return _unique([by_name[name] for name in settings.enabled_filters])


def options_of(rule: RuleClass, tables: dict[str, dict[str, Any]]) -> msgspec.Struct:
    """Return the options of a rule, with defaults.

    Raises:
        BadSettings: an option has an invalid type or value.
    """
    return read_section(rule.section, rule.options, tables.get(rule.section, {}))


def _scan(package: ModuleType) -> tuple[RuleClass, ...]:
    rules: list[RuleClass] = []
    for module in pkgutil.iter_modules(package.__path__):
        path = f"{package.__name__}.{module.name}"
        members = vars(_import(path)).values()
        rule: Any = next((each for each in members if inspect.isclass(each) and _name(each) == module.name), None)
        if rule is None:
            raise BadSettings(path, f"has no rule named {module.name}; {_ADVICE}")
        rules.append(rule)
    return tuple(rules)


def _import(path: str) -> ModuleType:
    try:
        return import_module(path)
    except (Exception, SystemExit) as error:  # A foreign file may raise anything.
        raise BadSettings(path, f"cannot be loaded: {error}; {_ADVICE}") from error


def _name(member: object) -> object:
    return getattr(member, "name", None)


@cache
def find_entries(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of the installed packages, ordered by name; they stay the same while the process runs.

    Each search reads the metadata of every installed package. A replay creates the rules anew for each decision.
    """
    return tuple(sorted(entry_points(group=group), key=lambda entry: entry.name))


def _entries(group: str) -> Iterator[RuleClass]:
    for entry in find_entries(group):
        try:
            loaded = entry.load()
        except (Exception, SystemExit) as error:  # A plug-in may fail to import in any way.
            raise BadSettings(f"entry point {group}.{entry.name}", f"cannot be loaded: {error}") from error
        if not _is_rule(loaded):
            raise BadSettings(f"entry point {group}.{entry.name}", "is not a rule of Roost")
        yield loaded


def _is_rule(loaded: object) -> bool:
    has_verdict = hasattr(loaded, "keep") or hasattr(loaded, "raw")
    return has_verdict and all(hasattr(loaded, name) for name in ("name", "nova_name", "section", "options"))


def _find_filters(path: str, ours: tuple[RuleClass, ...], adapt: Adapt | None) -> Iterable[RuleClass]:
    if path in ("nova.scheduler.filters.all_filters", "roost.compat.scheduler.filters.all_filters"):
        return ours
    return _find_rules(path, ours, adapt, setting=_AVAILABLE)


def _find_weighers(path: str, ours: tuple[RuleClass, ...], adapt: Adapt | None) -> Iterable[RuleClass]:
    if path in ("nova.scheduler.weights.all_weighers", "roost.compat.scheduler.weights.all_weighers"):
        return ours
    return _find_rules(path, ours, adapt, setting=_WEIGHTS)


def _find_rules(path: str, ours: tuple[RuleClass, ...], adapt: Adapt | None, *, setting: str) -> Iterable[RuleClass]:
    """Return the rules of one value of a setting."""
    # A rule's name alone, or at the end of a path in Nova, selects Roost's own rule.
    last = path.rpartition(".")[2]
    if "." not in path or path.startswith(("nova.scheduler.", "roost.compat.scheduler.")):
        matches = [rule for rule in ours if last and last in (rule.name, rule.nova_name)]
        if matches:
            return matches
        if not path.startswith("roost."):
            raise BadSettings(setting, f"there is no rule {quote_value(path)}")
    loaded = _load(path, setting)
    if inspect.isclass(loaded):
        return [_as_rule(loaded, path, adapt, setting=setting)]
    if not callable(loaded):
        raise BadSettings(setting, f"{path} is neither a class nor a function that returns classes")
    try:
        classes = list(loaded())
    except (Exception, SystemExit) as error:  # The function may raise anything.
        raise BadSettings(setting, f"{path} returns no classes: {error}") from error
    return [_as_rule(each, path, adapt, setting=setting) for each in classes]


def _load(path: str, setting: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # A plug-in may fail to import in any way.
        raise BadSettings(setting, f"{path} cannot be loaded: {error}") from error


def _as_rule(loaded: Any, path: str, adapt: Adapt | None, *, setting: str) -> RuleClass:
    if _is_rule(loaded):
        rule: RuleClass = loaded
        return rule
    adapted = adapt(loaded) if adapt is not None and inspect.isclass(loaded) else None
    if adapted is None:
        raise BadSettings(setting, f"{path} is not a rule")
    return adapted


_Rule = TypeVar("_Rule")


def _unique(rules: Iterable[_Rule]) -> tuple[_Rule, ...]:
    return tuple(dict.fromkeys(rules))
