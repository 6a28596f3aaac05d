"""Roost's settings as Nova's CONF, and the options registered by plug-ins.

A process has one CONF. It shows the settings of the running rule. In a replay, rules with different settings share
the process; each rule puts its settings into CONF before it runs.
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

# Plug-ins import the library or its stand-in as ``oslo_config``, or the stand-in by its own name.
_MODULES = ("oslo_config.cfg", "roost.compat.oslo_config.cfg")
# Sections of Nova, and their fields in ``Settings``.
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
# Sections with another meaning in Roost. Options of plug-ins in them always have their defaults.
_RESERVED = ("store", "placement", "conductor", "notifications", "monitoring", "nova", "agent")
# Sections of Nova that may also have options of plug-ins.
_SHARED = ("DEFAULT", "filter_scheduler", "scheduler", "metrics", "pci", "compute", "workarounds")
_current: list[Settings] = [Settings()]
_of_plug_ins: set[tuple[str, str]] = set()  # section and name of each option of plug-ins


def use_settings(settings: Settings | None) -> None:
    """Make CONF show the given settings; None: do nothing."""
    if settings is None or settings is _current[0]:
        return
    _current[0] = settings
    cfg = _cfg()
    if cfg is not None:
        fill(cfg.CONF)


def options_of(rule: registry.RuleClass) -> msgspec.Struct:
    """Return the options of a rule from the settings in CONF."""
    return registry.options_of(rule, _current[0].tables)


def down_time_s() -> float:
    """Return the seconds without a report after which a service counts as down, from the settings in CONF."""
    return float(_values(_current[0])["DEFAULT"]["service_down_time"])


def fill(conf: Any) -> None:
    """Put the values of the settings into a CONF.

    Raises:
        BadSettings: the value of a plug-in's option is invalid.
    """
    values = _values(_current[0])
    if hasattr(conf, "settings"):
        conf.settings = values
        return
    if is_installed("nova"):
        # Import Nova first: it cannot register its options after Roost has added them to CONF.
        import nova.conf  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    for group, table in values.items():
        for name, value in table.items():
            _override(conf, group, name, value)


@contextlib.contextmanager
def track_plugin_options() -> Iterator[None]:
    """Record all options registered in the block as options of plug-ins."""
    before = _places()
    yield
    _of_plug_ins.update(_places() - before)


def _places() -> set[tuple[str, str]]:
    cfg = _cfg()
    return set() if cfg is None else {(group, opt.dest) for group, opt in _options(cfg.CONF)}


def list_plugin_options() -> list[tuple[str, type[msgspec.Struct]]]:
    """Return the options of plug-ins: by section, a struct with the options as fields."""
    cfg = _cfg()
    if cfg is None:
        return []
    built_in = _defaults()
    fields_by_section: dict[str, list[tuple[str, Any, Any]]] = {}
    library_options = _library_options()
    for group, opt in _options(cfg.CONF):
        is_built_in = opt.dest in built_in.get(group, {}) or group in _RESERVED or group.startswith("oslo_")
        is_of_library = (group, opt.dest) in library_options or (group, "") in library_options
        if (group, opt.dest) in _of_plug_ins and not is_built_in and not is_of_library:
            kind = _kind(opt)
            default = opt.default if opt.default is None else _plain(opt.default)
            field = msgspec.field(default_factory=functools.partial(_copy, default)) if kind is list else default
            fields_by_section.setdefault(group, []).append((opt.dest, kind, field))
    return [
        (group, msgspec.defstruct("PluginOptions", fields, frozen=True)) for group, fields in fields_by_section.items()
    ]


def list_repeated_options() -> Iterator[tuple[str, str]]:
    """Yield section and name of each repeatable plug-in option: a file has one line per value."""
    cfg = _cfg()
    for group, opt in () if cfg is None else _options(cfg.CONF):
        if opt.multi and (group, opt.dest) in _of_plug_ins:
            yield group, opt.dest


def check(section: str, values: Mapping[str, Any]) -> None:
    """Check values of plug-in options.

    Raises:
        BadSettings: a value is invalid.
    """
    cfg = _cfg()
    for group, opt in () if cfg is None else _options(cfg.CONF):
        value = values.get(opt.dest)
        if group == section and value is not None and value != opt.default:
            problem = _problem(opt, value)
            if problem:
                raise BadSettings(f"{section}.{opt.dest}", f"{problem}, got {value!r}")


def _cfg() -> Any:
    """Return the imported ``cfg`` module; None: no plug-in has imported one."""
    return next((sys.modules[name] for name in _MODULES if name in sys.modules), None)


def _values(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return all values by section and name: the defaults of the rules, overridden by the settings."""
    values = {group: dict(table) for group, table in _defaults().items()}
    for group, part in _PARTS.items():
        values.setdefault(group, {}).update(msgspec.structs.asdict(getattr(settings, part)))
    for group, table in settings.tables.items():
        values.setdefault(group, {}).update(table)
    # An installed Nova has only the current names. It would refuse options with the old names.
    if not is_installed("nova"):
        for name, value in values["filter_scheduler"].items():
            values["DEFAULT"].setdefault(name, value)  # their section in Icehouse
        values["DEFAULT"]["scheduler_host_subset_size"] = values["filter_scheduler"]["host_subset_size"]
    # An empty text means unset if the default is empty. Nova has None for it.
    unset = {(group, name) for group, table in _defaults().items() for name, value in table.items() if value == ""}
    return {
        group: {
            name: None if value == "" and (group, name) in unset else _plain(value) for name, value in table.items()
        }
        for group, table in values.items()
    }


@functools.cache
def _defaults() -> Mapping[str, Mapping[str, Any]]:
    """Return the defaults of Roost's own options, by section and name."""
    defaults: dict[str, dict[str, Any]] = {}
    for rule in (*registry.builtin_filters(), *registry.builtin_weighers()):
        defaults.setdefault(rule.section, {}).update(msgspec.structs.asdict(rule.options()))
    for group, part in _PARTS.items():
        defaults.setdefault(group, {}).update(msgspec.structs.asdict(getattr(Settings(), part)))
    return defaults


def _plain(value: Any) -> Any:
    """Return a value as in oslo.config, with lists for tuples."""
    return list(value) if isinstance(value, tuple) else value


def _copy(value: Any) -> list[Any]:
    return list(value or ())


def _options(conf: Any) -> Iterator[tuple[str, Any]]:
    """Yield all registered options with their sections."""
    if hasattr(conf, "options"):
        yield from ((group, opt) for group, opts in conf.options.items() for opt in opts.values())
        return
    # The library has no public list of the registered options.
    yield from (("DEFAULT", each["opt"]) for each in list(conf._opts.values()))  # noqa: SLF001
    for name, group in list(conf._groups.items()):  # noqa: SLF001
        yield from ((name, each["opt"]) for each in list(group._opts.values()))  # noqa: SLF001


@functools.cache
def _library_options() -> frozenset[tuple[str, str]]:
    """Return section and name of the options of libraries; an empty name is the whole section."""
    options = {("DEFAULT", name) for name in ("config_file", "config_dir", "config_source", "shell_completion")}
    if is_installed("nova"):
        from nova.conf import opts  # type: ignore[import-not-found,unused-ignore]

        for group, group_options in opts.list_opts():
            name = str(getattr(group, "name", group))
            options |= {(name, opt.dest) for opt in group_options} if name in _SHARED else {(name, "")}
    return frozenset(options)


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
        return f"is invalid: {error}"
    return ""


def _override(conf: Any, group: str, name: str, value: Any) -> None:
    """Set one value in the CONF of the library."""
    cfg: Any = _cfg()
    section = None if group == "DEFAULT" else group
    try:
        if value is None:
            conf.clear_override(name, section)
        else:
            conf.set_override(name, value, section)
    except (cfg.NoSuchOptError, cfg.NoSuchGroupError):
        conf.register_opt(_option(cfg, name, value), section)
        if value is not None:
            conf.set_override(name, value, section)
    except ValueError as error:
        # An empty value means unset.
        if value:
            raise BadSettings(f"{group}.{name}", f"is invalid: {error}") from None
        conf.clear_override(name, section)


def _option(cfg: Any, name: str, value: Any) -> Any:
    """Return an option of the library for a setting."""
    option_class = {bool: cfg.BoolOpt, int: cfg.IntOpt, float: cfg.FloatOpt, list: cfg.ListOpt}.get(
        type(value), cfg.StrOpt
    )
    return option_class(name, default=value)
