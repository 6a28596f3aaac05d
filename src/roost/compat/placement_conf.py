"""An existing ``placement.conf``: what of it is a setting of ours, and what of it has no effect here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roost.compat.ini import Ini, read_ini
from roost.errors import BadFile, BadSettings

_POLICY_FILE = "policy.yaml"  # beside the file, if it is there
_TRUE = {"true", "1", "on", "yes"}
_FALSE = {"false", "0", "off", "no"}
_POSTGRESQL = ("postgresql", "postgres")
# Why an option has no effect, where that is more than that nothing here needs it.
_REASONS: Mapping[tuple[str, str], str] = {
    ("workarounds", "optimize_for_wide_provider_trees"): "wide trees are no trouble here",
    ("placement_database", "slave_connection"): "reads come from memory",
    ("oslo_policy", "enforce_scope"): "a token for the whole system is always refused",
    ("oslo_policy", "policy_dirs"): "name one file with policy_file",
    ("oslo_policy", "policy_default_rule"): "every policy has a rule of its own",
}


@dataclass(slots=True, kw_only=True)
class PlacementConf:
    """What a file comes to."""

    settings: dict[str, Any] = field(default_factory=dict)  # of section placement
    connection: str | None = None  # URL of a database as we name it
    problem: str | None = None  # with the connection, where it cannot be honoured
    notes: list[str] = field(default_factory=list)  # what has no effect, a sentence each


def read_placement_conf(path: Path) -> PlacementConf:
    """Read a file.

    Raises:
        BadFile: it cannot be read, or a value in it is wrong.
    """
    ini = read_ini(path)
    conf = PlacementConf()
    # What that file's own program takes for granted where it says nothing.
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
    """Return the database of some ``placement.conf``, of which later ones go before.

    Raises:
        BadSettings: none names a database.
        BadFile: a file cannot be read or understood.
    """
    return database_url(connection_of_files(paths))


def connection_of_files(paths: Sequence[Path]) -> str:
    """Return the connection as some ``placement.conf`` spell it; see ``database_of_files``."""
    connection = _last(paths, "placement_database", "connection")
    if not connection:
        place = str(paths[-1]) if paths else "placement.conf"
        raise BadSettings(place, "placement_database.connection is not set")
    return connection


def policy_file_of(paths: Sequence[Path]) -> Path | None:
    """Return the policy file that some ``placement.conf`` name; None: there is none."""
    if not paths:
        return None
    path = _policy_beside(paths[-1], _last(paths, "oslo_policy", "policy_file"))
    return path if path.is_file() else None


def database_url(connection: str) -> str:
    """Return a connection as SQLAlchemy spells it as a URL of ours.

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
    """Return a URL as we name it, or what is wrong with it."""
    kind, separator, rest = database_url(url).partition("://")
    if separator and kind in _POSTGRESQL:
        return f"postgresql://{rest}", None
    if separator and kind == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return f"sqlite://{rest.partition('?')[0]}", None
    return None, (
        f"a database of the kind {kind or 'none'} cannot be served: give an own one with --database (a PostgreSQL URL, "
        "or the path of a SQLite file), and copy what there is with `roost import placement --from URL`"
    )


def _notes(ini: Ini, *, has_keystone: bool) -> Iterator[str]:
    read = {*_SETTINGS, ("placement_database", "connection")}
    for section, option in ini.options():
        if (section, option) in read or (section == "keystone_authtoken" and has_keystone):
            continue
        reason = _REASONS.get((section, option), "nothing here needs it")
        yield f"{ini.path}: [{section}] {option} has no effect: {reason}"


def _text(ini: Ini, section: str, option: str) -> str:
    return ini.get(section, option) or ""


def _number(ini: Ini, section: str, option: str) -> int:
    text = _text(ini, section, option)
    try:
        return int(text)
    except ValueError:
        raise BadFile(ini.path, f"[{section}] {option} must be a whole number, got {text!r}") from None


def _truth(ini: Ini, section: str, option: str) -> bool:
    text = _text(ini, section, option).lower()
    if text not in _TRUE | _FALSE:
        raise BadFile(ini.path, f"[{section}] {option} must be true or false, got {text!r}")
    return text in _TRUE


def _list(ini: Ini, section: str, option: str) -> list[str]:
    return ini.all(section, option)


# What is honoured: where it stands, and the setting it is.
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
