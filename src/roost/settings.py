"""Reading ``roost.toml``: which file, what it may say, and where the data is."""

import difflib
import math
import re
import tomllib
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from roost.errors import BadSettings
from roost.model.pci import read_alias
from roost.model.placement_settings import Placement
from roost.model.settings import Default, FilterScheduler, Pci, Scheduler, Settings, Store, Workarounds
from roost.scheduler import plugins
from roost.scheduler.plugins import Adapt, RuleClass

Part = TypeVar("Part", bound=msgspec.Struct)

_OWN: Mapping[str, type[msgspec.Struct]] = types.MappingProxyType(
    {
        "DEFAULT": Default,
        "scheduler": Scheduler,
        "filter_scheduler": FilterScheduler,
        "workarounds": Workarounds,
        "pci": Pci,
        "store": Store,
        "placement": Placement,
    }
)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What can be said of one setting without knowing its value."""

    section: str
    key: str
    kind: str  # of its value, in words
    default: Any
    description: str
    owners: tuple[str, ...]  # rules that read it; none: Roost itself


def find_settings(argument: str | None, environ: Mapping[str, str], exists: Callable[[Path], bool]) -> Path | None:
    """Return the settings file to read: ``--config``, ``$ROOST_CONFIG``, ``./roost.toml``, ``/etc/roost/roost.toml``.

    Args:
        argument: what was given with ``--config``, if anything.
        environ: the environment.
        exists: says whether a file is there.

    Returns:
        The first of these; None if there is none, which means all defaults.

    Raises:
        BadSettings: a file that was asked for is not there.
    """
    for origin, named in (("--config", argument), ("ROOST_CONFIG", environ.get("ROOST_CONFIG"))):
        if named:
            path = Path(named)
            if not exists(path):
                raise BadSettings(origin, f"there is no file {path}")
            return path
    return next((path for path in (Path("roost.toml"), Path("/etc/roost/roost.toml")) if exists(path)), None)


def data_folder(argument: str | None, environ: Mapping[str, str], *, is_root: bool) -> Path:
    """Return the folder of the data: ``--data``, ``$ROOST_DATA``, ``/var/lib/roost`` as root, else one at home.

    Raises:
        BadSettings: there is no home to put it in.
    """
    named = argument or environ.get("ROOST_DATA")
    if named:
        return Path(named)
    if is_root:
        return Path("/var/lib/roost")
    home = environ.get("HOME")
    if not home:
        raise BadSettings("--data", "neither it nor ROOST_DATA nor HOME is set")
    return Path(home) / ".local" / "share" / "roost"


def load_settings(path: Path | None, *, adapt: Adapt | None = None) -> Settings:
    """Read a settings file, or take the defaults.

    Args:
        path: of the file; None for the defaults.
        adapt: makes rules of classes that are none; see ``roost.scheduler.plugins``.

    Raises:
        BadSettings: the file cannot be read, or something in it is unknown or wrong.
    """
    if path is None:
        return read_settings("", adapt=adapt)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadSettings(str(path), f"cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadSettings(str(path), "is not UTF-8 text") from None
    return read_settings(text, origin=str(path), adapt=adapt)


def read_settings(text: str, *, origin: str = "roost.toml", adapt: Adapt | None = None) -> Settings:
    """Make settings of the text of a settings file; ``origin`` names it in errors."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers too long, and lists in lists too deep
        raise BadSettings(origin, f"is no TOML: {error}") from None
    try:
        return _settings(document, adapt)
    except BadSettings as error:
        raise BadSettings(f"{origin}: {error.path}", error.problem) from error


def schema(*, settings: Settings | None = None, adapt: Adapt | None = None) -> list[Setting]:
    """Return every setting there is, by section and key: Roost's own, then those of the rules."""
    found = plugins.catalogue((settings or Settings()).filter_scheduler, adapt=adapt)
    listed: dict[tuple[str, str], Setting] = {}
    for section, kind in _OWN.items():
        for setting in _described(section, kind, owners=()):
            listed[section, setting.key] = setting
    for rule in found.known:
        for setting in _described(rule.section, rule.options, owners=(rule.name,)):
            known = listed.get((setting.section, setting.key))
            owners = setting.owners if known is None else (*known.owners, *setting.owners)
            listed[setting.section, setting.key] = msgspec.structs.replace(setting, owners=owners)
    return list(listed.values())


def _settings(document: dict[str, Any], adapt: Adapt | None) -> Settings:
    for section, table in document.items():
        if not isinstance(table, dict):
            raise BadSettings(section, "stands in no section; every setting belongs to one")
    own = {section: _own_part(section, kind, document) for section, kind in _OWN.items()}
    filter_scheduler = own["filter_scheduler"]
    assert isinstance(filter_scheduler, FilterScheduler)
    # Only now is known which rules there are, and so which settings.
    found = plugins.catalogue(filter_scheduler, adapt=adapt)
    plugins.enabled_filters(found, filter_scheduler)
    _refuse_unknown(document, found.known)
    tables: dict[str, dict[str, Any]] = {}
    for rule in found.known:
        options = converted_section(rule.section, rule.options, document.get(rule.section, {}))
        if rule.options.__struct_fields__:
            tables.setdefault(rule.section, {}).update(msgspec.structs.asdict(options))
    values: dict[str, Any] = {**own, "tables": tables}
    _check_pci(own["pci"], is_placed=filter_scheduler.pci_in_placement)
    return msgspec.convert({key: msgspec.to_builtins(value) for key, value in values.items()}, Settings)


def _check_pci(pci: msgspec.Struct, *, is_placed: bool) -> None:
    """Refuse aliases that say nothing by which devices could be told, where Placement is not asked."""
    assert isinstance(pci, Pci)
    for text in () if is_placed else pci.alias:
        alias = read_alias(text)
        if alias.vendor_id is None or alias.product_id is None:
            problem = "entry needs vendor_id and product_id unless filter_scheduler.pci_in_placement is true"
            raise BadSettings("pci.alias", f"{problem}, got {text!r}")


def _own_part(section: str, kind: type[msgspec.Struct], document: dict[str, Any]) -> msgspec.Struct:
    return converted_section(section, kind, document.get(section, {}))


def converted_section(section: str, kind: type[Part], table: Mapping[str, Any]) -> Part:
    """Return the part of a section that one struct owns.

    Raises:
        BadSettings: a value is wrong.
    """
    values = {key: table[key] for key in kind.__struct_fields__ if key in table}
    for key, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise BadSettings(f"{section}.{key}", f"must be a finite number, got {value}")
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$.")
        key = (re.match(r"\w+", place) or re.match(r"\w+", problem) or [""])[0]
        if key not in kind.__struct_fields__:
            raise BadSettings(section, problem) from None
        problem = problem.removeprefix(f"{key} ").replace("Expected ", "must be ").replace("`", "")
        told = problem if ", got " in problem else f"{problem}, got {values[key]!r}"
        raise BadSettings(f"{section}.{key}", told) from None


def _refuse_unknown(document: dict[str, Any], rules: Iterable[RuleClass]) -> None:
    known: dict[str, set[str]] = {section: set(kind.__struct_fields__) for section, kind in _OWN.items()}
    for rule in rules:
        known.setdefault(rule.section, set()).update(rule.options.__struct_fields__)
    for section, table in document.items():
        if section not in known:
            raise BadSettings(section, f"is no section; {_nearest(section, known)}")
        for key in table:
            if key not in known[section]:
                raise BadSettings(f"{section}.{key}", f"is no setting; {_nearest_setting(section, key, known)}")


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0)
    return f"the nearest known name is {close[0]}"


def _nearest_setting(section: str, key: str, known: Mapping[str, set[str]]) -> str:
    for other, keys in known.items():
        if other != section and key in keys:
            return f"it belongs to section {other}"
    return _nearest(key, known[section] or {name for keys in known.values() for name in keys})


def _described(section: str, kind: type[msgspec.Struct], *, owners: tuple[str, ...]) -> list[Setting]:
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
