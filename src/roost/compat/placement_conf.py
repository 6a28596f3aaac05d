"""An existing ``placement.conf``: its options as settings, and notes on options without effect."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roost.compat.ini import Ini, read_ini
from roost.errors import BadSettings

_POLICY_FILE = "policy.yaml"  # beside the file, optional
_TRUE = {"true", "1", "on", "yes"}
_FALSE = {"false", "0", "off", "no"}
_POSTGRESQL = ("postgresql", "postgres")
_MARIADB = ("mysql", "mariadb")
# Reasons why options have no effect; the default is that nothing needs them.
_REASONS: Mapping[tuple[str, str], str] = {
    ("workarounds", "optimize_for_wide_provider_trees"): "wide trees need no workaround here",
    ("placement_database", "slave_connection"): "reads come from memory",
    ("oslo_policy", "enforce_scope"): "a token for the whole system is always refused",
    ("oslo_policy", "policy_dirs"): "name one file with policy_file",
    ("oslo_policy", "policy_default_rule"): "every policy has a rule of its own",
}


@dataclass(slots=True, kw_only=True)
class PlacementConf:
    """The settings and notes of a file."""

    settings: dict[str, Any] = field(default_factory=dict)  # of section placement
    connection: str | None = None  # URL of a database in Roost's form
    problem: str | None = None  # why the connection cannot be used
    notes: list[str] = field(default_factory=list)  # one sentence per option without effect


def read_placement_conf(path: Path) -> PlacementConf:
    """Read a file.

    Raises:
        BadSettings: the file cannot be read, or a value is invalid.
    """
    ini = read_ini(path)
    conf = PlacementConf()
    # Placement's default.
    conf.settings["auth_strategy"] = "keystone"
    for (section, option), (name, convert) in _SETTINGS.items():
        if ini.get(section, option) is not None:
            conf.settings[name] = convert(ini, section, option)
    if conf.settings["auth_strategy"] == "keystone":
        conf.settings["keystone_file"] = str(path)
    _find_policy(conf, path)
    connection = ini.get("placement_database", "connection")
    if connection is not None:
        conf.connection, conf.problem = _connection(connection)
    conf.notes += _notes(ini, has_keystone=conf.settings["auth_strategy"] == "keystone")
    return conf


def database_of_files(paths: Sequence[Path]) -> str:
    """Return the database URL in ``placement.conf`` files; later files override earlier ones.

    Raises:
        BadSettings: no file has a database, or one cannot be read or parsed.
    """
    return database_url(connection_of_files(paths))


def connection_of_files(paths: Sequence[Path]) -> str:
    """Return the connection in ``placement.conf`` files, in SQLAlchemy's form; see ``database_of_files``."""
    connection = _last(paths, "placement_database", "connection")
    if not connection:
        place = str(paths[-1]) if paths else "placement.conf"
        raise BadSettings(place, "placement_database.connection is not set")
    return connection


def policy_file_of(paths: Sequence[Path]) -> Path | None:
    """Return the policy file of ``placement.conf`` files; None: it does not exist."""
    if not paths:
        return None
    path = _policy_beside(paths[-1], _last(paths, "oslo_policy", "policy_file"))
    return path if path.is_file() else None


def database_url(connection: str) -> str:
    """Convert a connection of SQLAlchemy to Roost's URL.

    >>> database_url("postgresql+psycopg2://roost@db/placement")
    'postgresql://roost@db/placement'
    """
    scheme, separator, rest = connection.strip().partition("://")
    return scheme.partition("+")[0] + separator + rest


def _last(paths: Sequence[Path], section: str, option: str) -> str | None:
    values = [read_ini(path).get(section, option) for path in paths]
    return next((value for value in reversed(values) if value is not None), None)


def _find_policy(conf: PlacementConf, path: Path) -> None:
    name = conf.settings.get("policy_file")
    file = _policy_beside(path, name)
    if name or file.exists():
        conf.settings["policy_file"] = str(file)


def _policy_beside(path: Path, name: str | None) -> Path:
    return path.parent / (name or _POLICY_FILE)


def _connection(url: str) -> tuple[str | None, str | None]:
    """Return a URL in Roost's form, or a problem."""
    kind, separator, rest = database_url(url).partition("://")
    if separator and kind in _POSTGRESQL:
        return f"postgresql://{rest}", None
    if separator and kind in _MARIADB:
        return f"mysql://{rest}", None
    if separator and kind == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return f"sqlite://{rest.partition('?')[0]}", None
    return None, (
        f"a database of the kind {kind or 'none'} cannot be served: give Roost's database with --database (a "
        "URL of PostgreSQL or MariaDB, or the path of a SQLite file), and import the data with `roost import placement "
        "--from URL`"
    )


def _notes(ini: Ini, *, has_keystone: bool) -> Iterator[str]:
    supported = {*_SETTINGS, ("placement_database", "connection")}
    for section, option in ini.options():
        if (section, option) in supported or (section == "keystone_authtoken" and has_keystone):
            continue
        reason = _REASONS.get((section, option), "Roost does not need it")
        yield f"{ini.path}: [{section}] {option} has no effect: {reason}"


def _text(ini: Ini, section: str, option: str) -> str:
    return ini.get(section, option) or ""


def _number(ini: Ini, section: str, option: str) -> int:
    text = _text(ini, section, option)
    try:
        return int(text)
    except ValueError:
        raise BadSettings(ini.path, f"[{section}] {option} must be a whole number, got {text!r}") from None


def _truth(ini: Ini, section: str, option: str) -> bool:
    text = _text(ini, section, option).lower()
    if text not in _TRUE | _FALSE:
        raise BadSettings(ini.path, f"[{section}] {option} must be true or false, got {text!r}")
    return text in _TRUE


def _list(ini: Ini, section: str, option: str) -> list[str]:
    return ini.get_list(section, option)


# Supported options: their settings and conversions.
_SETTINGS: Mapping[tuple[str, str], tuple[str, Callable[[Ini, str, str], Any]]] = {
    ("api", "auth_strategy"): ("auth_strategy", _text),
    ("placement_database", "sync_on_startup"): ("sync_on_startup", _truth),
    ("oslo_policy", "policy_file"): ("policy_file", _text),
    ("oslo_policy", "enforce_new_defaults"): ("enforce_new_defaults", _truth),
    ("cors", "allowed_origin"): ("cors_allowed_origin", _list),
    ("cors", "allow_credentials"): ("cors_allow_credentials", _truth),
    ("cors", "expose_headers"): ("cors_expose_headers", _list),
    ("cors", "max_age"): ("cors_max_age", _number),
    ("cors", "allow_methods"): ("cors_allow_methods", _list),
    ("cors", "allow_headers"): ("cors_allow_headers", _list),
    **{
        ("placement", name): (name, convert)
        for name, convert in {
            "randomize_allocation_candidates": _truth,
            "max_allocation_candidates": _number,
            "allocation_candidates_generation_strategy": _text,
            "allocation_conflict_retry_count": _number,
            "incomplete_consumer_project_id": _text,
            "incomplete_consumer_user_id": _text,
        }.items()
    },
}
