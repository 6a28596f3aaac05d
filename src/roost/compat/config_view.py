"""Roost's settings as the CONF that plug-ins of Nova read, and the options that plug-ins register.

A process has one CONF. It shows the settings of the rule that is at work: rules of other settings in the same process,
as in a replay, put theirs there before they judge.
"""

import contextlib
import functools
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from roost.compat.aliases import is_installed
from roost.errors import BadSettings
from roost.model.settings.roost_settings import Settings
from roost.scheduler import registry

# The library, or the stand-in for it, which is imported under its own name where a plug-in imports it from its package.
_MODULES = ("oslo_config.cfg", "roost.compat.oslo_config.cfg")
# Sections of our own, and their names in Nova.
_PARTS = {
    "DEFAULT": "default",
    "scheduler": "scheduler",
    "filter_scheduler": "filter_scheduler",
    "workarounds": "workarounds",
    "compute": "compute",
    "pci": "pci",
}
_KINDS: Mapping[str, type] = {
    "Integer": int,
    "Port": int,
    "Float": float,
    "Boolean": bool,
    "List": list,
    "Dict": dict,
}
# Sections that mean something else here, where plug-ins have only their defaults.
_RESERVED = ("store", "placement", "conductor", "notifications", "agent")
# Sections of Nova in which plug-ins have options of their own.
_SHARED = ("DEFAULT", "filter_scheduler", "scheduler", "metrics", "pci", "compute", "workarounds")
_current: list[Settings] = [Settings()]
_of_plug_ins: set[tuple[str, str]] = set()  # section and name of the options that they registered


def use(settings: Settings | None) -> None:
    """Let CONF show some settings; None: leave it as it is."""
    if settings is None or settings is _current[0]:
        return
    _current[0] = settings
    cfg = _cfg()
    if cfg is not None:
        fill(cfg.CONF)


def options_of(rule: registry.RuleClass) -> msgspec.Struct:
    """Return the options of a rule, by the settings that CONF shows."""
    return registry.options_of(rule, _current[0].tables)


def down_time_s() -> float:
    """Return how long a service may be silent before it counts as down, by the settings that CONF shows."""
    return float(_values(_current[0])["DEFAULT"]["service_down_time"])


def fill(conf: Any) -> None:
    """Put the values of the settings into a CONF.

    Raises:
        BadSettings: an option of a plug-in cannot have its value.
    """
    values = _values(_current[0])
    if hasattr(conf, "settings"):
        conf.settings = values
        return
    if is_installed("nova"):
        # First, since it refuses to register what is there already.
        import nova.conf  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    for group, table in values.items():
        for name, value in table.items():
            _override(conf, group, name, value)


@contextlib.contextmanager
def track_plugin_options() -> Iterator[None]:
    """Note which options are registered meanwhile: those are of plug-ins, and no others, as of Keystone's library."""
    before = _places()
    yield
    _of_plug_ins.update(_places() - before)


def _places() -> set[tuple[str, str]]:
    cfg = _cfg()
    return set() if cfg is None else {(group, opt.dest) for group, opt in _options(cfg.CONF)}


def list_plugin_options() -> list[tuple[str, type[msgspec.Struct]]]:
    """Return the options that plug-ins have registered: sections, each with its options as the fields of a struct."""
    cfg = _cfg()
    if cfg is None:
        return []
    own = _defaults()
    found: dict[str, list[tuple[str, Any, Any]]] = {}
    of_libraries = _library_options()
    for group, opt in _options(cfg.CONF):
        is_own = opt.dest in own.get(group, {}) or group in _RESERVED or group.startswith("oslo_")
        is_library_s = (group, opt.dest) in of_libraries or (group, "") in of_libraries
        if (group, opt.dest) in _of_plug_ins and not is_own and not is_library_s:
            kind = _kind(opt)
            default = opt.default if opt.default is None else _plain(opt.default)
            field = msgspec.field(default_factory=functools.partial(_copy, default)) if kind is list else default
            found.setdefault(group, []).append((opt.dest, kind, field))
    return [(group, msgspec.defstruct("Registered", fields, frozen=True)) for group, fields in found.items()]


def list_repeated_options() -> Iterator[tuple[str, str]]:
    """Give section and name of the options of plug-ins of which every line is a value."""
    cfg = _cfg()
    for group, opt in () if cfg is None else _options(cfg.CONF):
        if opt.multi and (group, opt.dest) in _of_plug_ins:
            yield group, opt.dest


def check(section: str, values: Mapping[str, Any]) -> None:
    """Check values of options that plug-ins registered.

    Raises:
        BadSettings: an option cannot have its value.
    """
    cfg = _cfg()
    for group, opt in () if cfg is None else _options(cfg.CONF):
        value = values.get(opt.dest)
        if group == section and value is not None and value != opt.default:
            problem = _problem(opt, value)
            if problem:
                raise BadSettings(f"{section}.{opt.dest}", f"{problem}, got {value!r}")


def _cfg() -> Any:
    """Return the module of options that is in use; None: no plug-in has imported one."""
    return next((sys.modules[name] for name in _MODULES if name in sys.modules), None)


def _values(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return all values by section and name: defaults of our rules, then what the settings say."""
    found = {group: dict(table) for group, table in _defaults().items()}
    for group, part in _PARTS.items():
        found.setdefault(group, {}).update(msgspec.structs.asdict(getattr(settings, part)))
    for group, table in settings.tables.items():
        found.setdefault(group, {}).update(table)
    if not is_installed("nova"):  # Which has today's options, and would refuse others of the same names.
        for name, value in found["filter_scheduler"].items():
            found["DEFAULT"].setdefault(name, value)  # where they all were in Icehouse
        found["DEFAULT"]["scheduler_host_subset_size"] = found["filter_scheduler"]["host_subset_size"]
    # A text that is empty by default is one that is not set, which is None in Nova.
    unset = {(group, name) for group, table in _defaults().items() for name, value in table.items() if value == ""}
    return {
        group: {
            name: None if value == "" and (group, name) in unset else _plain(value) for name, value in table.items()
        }
        for group, table in found.items()
    }


@functools.cache
def _defaults() -> Mapping[str, Mapping[str, Any]]:
    """Return the defaults of Roost's own options, by section and name."""
    found: dict[str, dict[str, Any]] = {}
    for rule in (*registry.builtin_filters(), *registry.builtin_weighers()):
        found.setdefault(rule.section, {}).update(msgspec.structs.asdict(rule.options()))
    for group, part in _PARTS.items():
        found.setdefault(group, {}).update(msgspec.structs.asdict(getattr(Settings(), part)))
    return found


def _plain(value: Any) -> Any:
    """Return a value as oslo.config gives it: lists where we have tuples."""
    return list(value) if isinstance(value, tuple) else value


def _copy(value: Any) -> list[Any]:
    return list(value or ())


def _options(conf: Any) -> Iterator[tuple[str, Any]]:
    """Give all registered options with their sections."""
    if hasattr(conf, "options"):
        yield from ((group, opt) for group, opts in conf.options.items() for opt in opts.values())
        return
    # The library has no public way to list options that were registered without a file.
    yield from (("DEFAULT", each["opt"]) for each in list(conf._opts.values()))  # noqa: SLF001
    for name, group in list(conf._groups.items()):  # noqa: SLF001
        yield from ((name, each["opt"]) for each in list(group._opts.values()))  # noqa: SLF001


@functools.cache
def _library_options() -> frozenset[tuple[str, str]]:
    """Return section and name of options that no plug-in registered; a name left empty stands for a whole section."""
    found = {("DEFAULT", name) for name in ("config_file", "config_dir", "config_source", "shell_completion")}
    if is_installed("nova"):
        from nova.conf import opts  # type: ignore[import-not-found,unused-ignore]

        for group, some in opts.list_opts():
            name = str(getattr(group, "name", group))
            found |= {(name, opt.dest) for opt in some} if name in _SHARED else {(name, "")}
    return frozenset(found)


def _kind(opt: Any) -> type:
    kind = getattr(opt, "kind", None)
    if isinstance(kind, type):
        return kind
    return list if opt.multi else _KINDS.get(type(opt.type).__name__, str)


def _problem(opt: Any, value: Any) -> str:
    if hasattr(opt, "check"):
        return str(opt.check(value))
    try:
        for each in value if opt.multi else [value]:
            opt.type(",".join(each) if isinstance(each, list) else each)
    except ValueError as error:
        return f"is wrong: {error}"
    return ""


def _override(conf: Any, group: str, name: str, value: Any) -> None:
    """Put one value into the CONF of the library."""
    cfg: Any = _cfg()
    place = None if group == "DEFAULT" else group
    try:
        if value is None:
            conf.clear_override(name, place)
        else:
            conf.set_override(name, value, place)
    except (cfg.NoSuchOptError, cfg.NoSuchGroupError):
        conf.register_opt(_option(cfg, name, value), place)
        if value is not None:
            conf.set_override(name, value, place)
    except ValueError as error:
        # What is left empty here has no value there.
        if value:
            raise BadSettings(f"{group}.{name}", f"is wrong: {error}") from None
        conf.clear_override(name, place)


def _option(cfg: Any, name: str, value: Any) -> Any:
    """Return an option of the library for one of our settings."""
    made = {bool: cfg.BoolOpt, int: cfg.IntOpt, float: cfg.FloatOpt, list: cfg.ListOpt}.get(type(value), cfg.StrOpt)
    return made(name, default=value)
