"""Finds and reads ``roost.toml`` and an existing ``nova.conf``, and finds the data folder."""

import difflib
import re
import tomllib
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from roost.compat import config_view
from roost.compat.nova_conf import NovaConf, read_nova_conf
from roost.errors import BadSettings, SettingsMissing, unreadable_settings
from roost.model.devices.pci import read_alias
from roost.model.settings.agent_settings import Agent
from roost.model.settings.conductor_settings import Conductor
from roost.model.settings.log_settings import Log
from roost.model.settings.monitoring_settings import Monitoring
from roost.model.settings.notification_settings import Notifications
from roost.model.settings.nova_settings import Nova
from roost.model.settings.placement_settings import Placement
from roost.model.settings.roost_settings import (
    Compute,
    Default,
    FilterScheduler,
    Pci,
    Scheduler,
    Settings,
    Store,
    Workarounds,
)
from roost.scheduler import registry
from roost.scheduler.framework.plugin import SupportsBadOptions, implements
from roost.scheduler.framework.rule_options import read_section
from roost.scheduler.registry import Adapt, RuleClass

Part = TypeVar("Part")
Struct = TypeVar("Struct", bound=msgspec.Struct)

_TOML_SECTION = re.compile(r"\s*\[\s*([\w-]+)\s*\]")
_TOML_KEY = re.compile(r"\s*([\w-]+)\s*=")

# Settings that name code; requests cannot override them.
CODE_SETTINGS = ("available_filters", "weight_classes")
_OWN_SECTIONS: Mapping[str, type[msgspec.Struct]] = types.MappingProxyType(
    {
        "DEFAULT": Default,
        "scheduler": Scheduler,
        "filter_scheduler": FilterScheduler,
        "workarounds": Workarounds,
        "compute": Compute,
        "pci": Pci,
        "store": Store,
        "conductor": Conductor,
        "placement": Placement,
        "notifications": Notifications,
        "monitoring": Monitoring,
        "nova": Nova,
        "agent": Agent,
        "log": Log,
    }
)
# Not read from ``nova.conf``: these sections have another meaning there.
_ROOST_SECTIONS = {"store", "placement", "notifications", "monitoring", "nova", "log"}


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """The description of one setting."""

    section: str
    key: str
    kind: str  # type of its value, in words
    default: Any
    description: str
    owners: tuple[str, ...]  # rules that read it; empty: Roost itself


def find_settings(argument: str | None, environ: Mapping[str, str], exists: Callable[[Path], bool]) -> Path | None:
    """Return the settings file to read: ``--config``, ``$ROOST_CONFIG``, ``./roost.toml``, ``/etc/roost/roost.toml``.

    Args:
        argument: the value of ``--config``, if given.
        environ: the environment.
        exists: returns whether a file exists.

    Returns:
        The first of these that is given or exists; None: use all defaults.

    Raises:
        SettingsMissing: a requested file does not exist.
    """
    for origin, name in (("--config", argument), ("ROOST_CONFIG", environ.get("ROOST_CONFIG"))):
        if name:
            path = Path(name)
            if not exists(path):
                raise SettingsMissing(origin, f"{path} does not exist; correct the path")
            return path
    return next((path for path in (Path("roost.toml"), Path("/etc/roost/roost.toml")) if exists(path)), None)


def data_folder(argument: str | None, environ: Mapping[str, str], *, is_root: bool) -> Path:
    """Return the data folder: ``--data``, ``$ROOST_DATA``, ``/var/lib/roost`` as root, else one in the home folder.

    Raises:
        BadSettings: neither a folder nor ``$HOME`` is set.
    """
    folder = argument or environ.get("ROOST_DATA")
    if folder:
        return Path(folder)
    if is_root:
        return Path("/var/lib/roost")
    home = environ.get("HOME")
    if not home:
        raise BadSettings("--data", "is not set, nor is ROOST_DATA or HOME")
    return Path(home) / ".local" / "share" / "roost"


def find_nova_conf(environ: Mapping[str, str], exists: Callable[[Path], bool]) -> Path | None:
    """Return the ``nova.conf`` of ``$ROOST_NOVA_CONF``, if set.

    Raises:
        SettingsMissing: the file does not exist.
    """
    name = environ.get("ROOST_NOVA_CONF")
    if not name:
        return None
    path = Path(name)
    if not exists(path):
        raise SettingsMissing("--nova-conf", f"{path} does not exist; correct the path")
    return path


class LoadedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings, with their sources and errors."""

    settings: Settings
    sources: dict[tuple[str, str], str]  # section and key -> file and line, for settings in a file
    notes: tuple[str, ...]  # options of a ``nova.conf`` without effect, one sentence each
    dropped: tuple[str, ...] = ()  # values that rules ignore, one sentence each
    problems: tuple[BadSettings, ...] = ()  # errors, if collected; wrong settings then have their defaults


def load_settings(path: Path | None, *, adapt: Adapt | None = None) -> Settings:
    """Read a settings file, or use the defaults; see ``load_with_sources``."""
    return load_with_sources(path, adapt=adapt).settings


def load_with_sources(
    path: Path | None, *, nova_conf: Path | None = None, adapt: Adapt | None = None, is_lenient: bool = False
) -> LoadedSettings:
    """Read the settings.

    Args:
        path: path of a settings file; None: use the defaults.
        nova_conf: path of an existing ``nova.conf``, which overrides the settings file.
        adapt: converts foreign classes to rules; see ``roost.scheduler.registry``.
        is_lenient: whether to collect all errors instead of raising the first.

    Raises:
        BadSettings: a file cannot be read, or a setting is unknown or wrong.
    """
    origin = "roost.toml" if path is None else str(path)
    reader = _Reader(origin, adapt=adapt, is_lenient=is_lenient)
    text = reader.attempt(lambda: "" if path is None else _read_text(path), "", is_located=True)
    nova = None if nova_conf is None else reader.attempt(lambda: read_nova_conf(nova_conf), None, is_located=True)
    return reader.read(text, nova)


def read_settings(text: str, *, origin: str = "roost.toml", adapt: Adapt | None = None) -> Settings:
    """Build settings from the text of a settings file; ``origin`` names it in errors."""
    return _Reader(origin, adapt=adapt).read(text, None).settings


def build_settings(document: Mapping[str, Any], *, adapt: Adapt | None = None) -> Settings:
    """Build settings from sections, by name, as in a settings file.

    Raises:
        BadSettings: a setting is unknown or wrong.
    """
    return _Reader("", adapt=adapt).build(document)


def override_settings(settings: Settings, document: Mapping[str, Any], *, adapt: Adapt | None = None) -> Settings:
    """Return settings with some overridden by sections of a settings file.

    Raises:
        BadSettings: a setting is unknown, wrong, or names code.
    """
    for name in CODE_SETTINGS:
        if name in document.get("filter_scheduler", {}):
            raise BadSettings(f"filter_scheduler.{name}", "names code, and cannot be overridden")
    values = msgspec.to_builtins(settings)
    tables = values.pop("tables")
    sections = {name: {**values.get(name, {}), **tables.get(name, {})} for name in {*values, *tables}}
    overrides = {name: {**sections.get(name, {}), **table} for name, table in document.items()}
    return build_settings({**sections, **overrides}, adapt=adapt)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable_settings(str(path), error) from None
    except UnicodeDecodeError:
        raise BadSettings(str(path), "is not UTF-8 text") from None


def values_of(settings: Settings) -> dict[tuple[str, str], Any]:
    """Return all values as JSON types, by section and key."""
    parts = msgspec.to_builtins(settings)
    for section, table in parts.pop("tables").items():
        parts.setdefault(section, {}).update(table)
    return {(section, key): value for section, part in parts.items() for key, value in part.items()}


def schema(*, settings: Settings | None = None, adapt: Adapt | None = None) -> list[Setting]:
    """Return the descriptions of all settings: Roost's own, then those of the rules."""
    catalogue = registry.catalogue((settings or Settings()).filter_scheduler, adapt=adapt)
    settings_by_name: dict[tuple[str, str], Setting] = {}
    for section, kind in _OWN_SECTIONS.items():
        for setting in _describe(section, kind, owners=()):
            settings_by_name[section, setting.key] = setting
    for rule in catalogue.configurable:
        for setting in _describe(rule.section, rule.options, owners=(rule.name,)):
            previous = settings_by_name.get((setting.section, setting.key))
            owners = setting.owners if previous is None else (*previous.owners, *setting.owners)
            settings_by_name[setting.section, setting.key] = msgspec.structs.replace(setting, owners=owners)
    return list(settings_by_name.values())


class _Reader:
    """Reads one settings file, and a ``nova.conf`` that overrides it.

    Args:
        origin: name of the settings file in errors.
        adapt, is_lenient: see ``load_with_sources``.
    """

    def __init__(self, origin: str, *, adapt: Adapt | None, is_lenient: bool = False) -> None:
        self._origin = origin
        self._adapt = adapt
        self._is_lenient = is_lenient
        self._problems: list[BadSettings] = []
        self._dropped: list[str] = []
        self._document: Mapping[str, Any] = {}
        self._nova: NovaConf | None = None

    def read(self, text: str, nova: NovaConf | None) -> LoadedSettings:
        """Build settings from the text of a settings file, and a ``nova.conf``."""
        self._nova = nova
        settings, names = self._build(self.attempt(partial(self._sections, text), {}, is_located=True))
        of_nova = {section: keys for section, keys in names.items() if section not in _ROOST_SECTIONS}
        return LoadedSettings(
            settings=settings,
            sources=self._sources(text, names),
            notes=() if nova is None else tuple(nova.notes(of_nova)),
            dropped=tuple(dict.fromkeys(self._dropped)),
            problems=tuple(self._problems),
        )

    def build(self, document: Mapping[str, Any]) -> Settings:
        """Build settings from sections, by name."""
        return self._build(self._sections_of(document))[0]

    def _build(self, document: Mapping[str, Any]) -> tuple[Settings, dict[str, set[str]]]:
        """Return the settings, and the names of all known settings, by section."""
        self._document = document
        own = {section: self._part(section, kind) for section, kind in _OWN_SECTIONS.items()}
        filter_scheduler = own["filter_scheduler"]
        assert isinstance(filter_scheduler, FilterScheduler)
        # The filter_scheduler section determines the rules, and with them the known settings.
        with config_view.track_plugin_options():
            catalogue = self._rules(filter_scheduler)
        registered = config_view.list_plugin_options()
        if self._nova is not None:
            self._nova.repeat(config_view.list_repeated_options())
        pci = own["pci"]
        assert isinstance(pci, Pci)
        self.attempt(partial(_check_pci, pci, is_placed=filter_scheduler.pci_in_placement), None)
        names = _setting_names(catalogue.configurable)
        for section, kind in registered:
            names.setdefault(section, set()).update(kind.__struct_fields__)
        for error in _unknown_settings(self._document, names):
            self.attempt(partial(_refuse, error), None)
        tables: dict[str, dict[str, Any]] = {}
        for rule in catalogue.configurable:
            options = self._part(rule.section, rule.options)
            if implements(rule, SupportsBadOptions):
                self._dropped += [str(self._locate(each)) for each in rule.bad_options(options)]
            if rule.options.__struct_fields__:
                tables.setdefault(rule.section, {}).update(msgspec.structs.asdict(options))
        for section, kind in registered:
            options_set = {
                key: value
                for key, value in msgspec.structs.asdict(self._part(section, kind)).items()
                if value is not None
            }
            self.attempt(partial(config_view.check, section, options_set), None)
            tables.setdefault(section, {}).update(options_set)
        values: dict[str, Any] = {**own, "tables": tables}
        return msgspec.convert({key: msgspec.to_builtins(value) for key, value in values.items()}, Settings), names

    def attempt(self, act: Callable[[], Part], otherwise: Part, *, is_located: bool = False) -> Part:
        """Call a function; if errors are collected, record its error and return a substitute.

        Args:
            act: the function.
            otherwise: the substitute for its result.
            is_located: whether its errors already name the file.
        """
        try:
            return act()
        except BadSettings as error:
            located = error if is_located else self._locate(error)
            if not self._is_lenient:
                raise located from error
            if str(located) not in map(str, self._problems):  # Rules share settings.
                self._problems.append(located)
            return otherwise

    def _locate(self, error: BadSettings) -> BadSettings:
        """Return an error with the name of its file."""
        section, _, key = error.path.partition(".")
        nova = None if section in _ROOST_SECTIONS else self._nova
        place = None if nova is None else nova.full_name(section, key)
        return BadSettings(place or self._qualify(error.path), error.problem)

    def _qualify(self, path: str) -> str:
        return f"{self._origin}: {path}" if self._origin else path

    def _nova_source(self, section: str, key: str) -> str | None:
        return None if self._nova is None or section in _ROOST_SECTIONS else self._nova.source(section, key)

    def _sections(self, text: str) -> Mapping[str, Any]:
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also numbers too long, and lists in lists too deep
            raise BadSettings(self._origin, f"is not TOML: {error}") from None
        return self._sections_of(document)

    def _sections_of(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        for section, table in document.items():
            if not isinstance(table, dict):
                raise BadSettings(self._qualify(section), "is outside a section; every setting belongs to one")
        return document

    def _rules(self, settings: FilterScheduler) -> registry.Catalogue:
        """Return the available rules. After an error in one setting that names rules, still check the others."""
        default, valid = FilterScheduler(), {}
        for name in CODE_SETTINGS:
            candidate = msgspec.structs.replace(default, **{name: getattr(settings, name)})
            read = partial(registry.catalogue, candidate, adapt=self._adapt)
            if getattr(settings, name) == getattr(default, name) or self.attempt(read, None) is not None:
                valid[name] = getattr(settings, name)
        catalogue = registry.catalogue(msgspec.structs.replace(default, **valid), adapt=self._adapt)
        if "available_filters" in valid:
            nothing: tuple[RuleClass, ...] = ()
            self.attempt(partial(_find_enabled_filters, catalogue, settings), nothing)
        return catalogue

    def _part(self, section: str, kind: type[Struct]) -> Struct:
        """Return the fields of a struct from a section; wrong values get their defaults."""
        table = dict(self._document.get(section, {}))
        if self._nova is not None and section not in _ROOST_SECTIONS:
            table = self._nova.defaults(section) | table
            for setting in _describe(section, kind, owners=()):
                read = partial(self._nova.values, section, {setting.key: setting.kind})
                nova_values: dict[str, Any] = self.attempt(read, {}, is_located=True)
                table.update(nova_values)
        while True:
            wrong: list[str] = []
            part = self.attempt(partial(_convert, section, kind, table, wrong=wrong), None)
            if part is not None:
                return part
            if not wrong:
                return kind()
            del table[wrong[0]]

    def _sources(self, text: str, names: Mapping[str, Iterable[str]]) -> dict[tuple[str, str], str]:
        lines = _toml_lines(text)
        sources = {}
        for section, keys in names.items():
            for key in keys:
                source = self._nova_source(section, key)
                if source is None and key in self._document.get(section, {}):
                    line = lines.get((section, key))
                    source = self._origin if line is None else f"{self._origin}:{line}"
                if source is None and self._nova is not None and key in self._nova.defaults(section):
                    source = self._nova.source_of_defaults
                if source is not None:
                    sources[section, key] = source
        return sources


def _find_enabled_filters(catalogue: registry.Catalogue, settings: FilterScheduler) -> tuple[RuleClass, ...]:
    try:
        return registry.select_filters(catalogue, settings)
    except BadSettings as error:
        if settings.enabled_filters != FilterScheduler().enabled_filters:
            raise
        problem = f"lacks a filter that enabled_filters has by default: {error.problem}"
        raise BadSettings("filter_scheduler.available_filters", problem) from None


def _refuse(error: BadSettings) -> None:
    raise error


def _check_pci(pci: Pci, *, is_placed: bool) -> None:
    """Refuse aliases without vendor and product, unless Placement tracks PCI devices."""
    for text in () if is_placed else pci.alias:
        alias = read_alias(text)
        if alias.vendor_id is None or alias.product_id is None:
            problem = "entry needs vendor_id and product_id unless filter_scheduler.pci_in_placement is true"
            raise BadSettings("pci.alias", f"{problem}, got {text!r}")


def _convert(section: str, kind: type[Struct], table: Mapping[str, Any], *, wrong: list[str]) -> Struct:
    """Return the fields of a struct from a section; add the key of a wrong value to ``wrong``."""
    try:
        return read_section(section, kind, table)
    except BadSettings as error:
        key = error.path.partition(".")[2]
        wrong += [key] if key else []
        raise


def _toml_lines(text: str) -> dict[tuple[str, str], int]:
    """Return the line number of each setting that starts a line, as nearly all do."""
    lines: dict[tuple[str, str], int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        head = _TOML_SECTION.match(line)
        if head is not None:
            section = head[1]
        elif (setting := _TOML_KEY.match(line)) is not None:
            lines.setdefault((section, setting[1]), number)
    return lines


def _setting_names(rules: Iterable[RuleClass]) -> dict[str, set[str]]:
    """Return the names of all known settings, by section."""
    names: dict[str, set[str]] = {section: set(kind.__struct_fields__) for section, kind in _OWN_SECTIONS.items()}
    for rule in rules:
        names.setdefault(rule.section, set()).update(rule.options.__struct_fields__)
    return names


def _unknown_settings(
    document: Mapping[str, Mapping[str, Any]], names: Mapping[str, set[str]]
) -> Iterator[BadSettings]:
    for section, table in document.items():
        if section not in names:
            yield BadSettings(section, f"is not a section; {_nearest(section, names)}")
            continue
        for key in table:
            if key not in names[section]:
                yield BadSettings(f"{section}.{key}", f"is not a setting; {_nearest_setting(section, key, names)}")


def _nearest(name: str, names: Iterable[str]) -> str:
    by_lower = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0)
    return f"the nearest known name is {by_lower[close[0]]}"


def _nearest_setting(section: str, key: str, names: Mapping[str, set[str]]) -> str:
    for other, keys in names.items():
        if other != section and key in keys:
            return f"it belongs to section {other}"
    return _nearest(key, names[section] or {name for keys in names.values() for name in keys})


def _describe(section: str, kind: type[msgspec.Struct], *, owners: tuple[str, ...]) -> list[Setting]:
    properties = msgspec.json.schema(kind)["$defs"][kind.__name__].get("properties", {})
    defaults = msgspec.structs.asdict(kind())
    return [
        Setting(
            section=section,
            key=key,
            kind=_KINDS[properties[key].get("type", "array")],
            default=default,
            description=properties[key].get("description", ""),
            owners=owners,
        )
        for key, default in defaults.items()
    ]


_KINDS = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    "array": "list",
    "object": "table",
}
