"""Roost's processes in the cloud: its Placement alone, or one or two of its schedulers."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg

from roost.store.postgresql.versions.upgrade import upgrade_postgresql
from tests.bed.combinations import Combination
from tests.bed.conf_files import Places
from tests.support.databases import postgres
from tests.support.fleets.products import command

NAMES = ("roost", "roost-2")
PLACEMENT_PATH = "/placement"  # of the Placement API in a server that also has Roost's own
_SETTINGS = "[placement]\nremote_sync_s = 2.0\n"


def placement_path(combination: Combination) -> str:
    """Return the path of the Placement API in its server."""
    is_whole = combination.placement == "roost" and combination.has_roost_scheduler
    return PLACEMENT_PATH if is_whole else ""


def scheduler_names(combination: Combination) -> tuple[str, ...]:
    """Return the names of Roost's schedulers."""
    return NAMES[: combination.roosts] if combination.has_roost_scheduler else ()


def commands(combination: Combination, places: Places, *, database: str | None) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the command of each process.

    Args:
        database: the URL of a PostgreSQL database that all share; None: a file for each.
    """
    names = scheduler_names(combination)
    for name in names or (("roost",) if combination.placement == "roost" else ()):
        data = places.folder / name
        noun: tuple[object, ...] = ("placement",)
        if names:
            noun = ("nova-scheduler", "--nova-conf", _conf(places, "nova/nova.conf"))
            noun += ("--placement", "catalog") if combination.placement == "upstream" else ()
        yield (
            name,
            command(
                *noun,
                *("--conf", _conf(places, "placement/placement.conf")),
                *("--config", data / "roost.toml"),
                *("--listen", f"127.0.0.1:{places.ports[name]}"),
                *("--data", data),
                *("--database", database or data / "roost.db"),
            ),
        )


def write_settings(places: Places) -> None:
    """Write the settings files of all processes."""
    for name in NAMES:
        (places.folder / name).mkdir()
        (places.folder / name / "roost.toml").write_text(_SETTINGS)


def create_database(server: postgres.Server) -> str:
    """Create an empty database on PostgreSQL; return its URL."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE roost")
    upgrade_postgresql(server.url("roost"))
    return server.url("roost")


def host_names(answer: Mapping[str, Any]) -> set[str]:
    """Return the names in a list of Roost's hosts."""
    return {host["host"] for host in answer["hosts"]}


def count_answers(metrics: str) -> int:
    """Return the number of calls that a scheduler answered, from the text of its metrics."""
    pattern = r'^roost_nova_replies_total\{[^}]*outcome="answered"[^}]*\} (\d+)'
    return sum(map(int, re.findall(pattern, metrics, re.MULTILINE)))


def _conf(places: Places, name: str) -> Path:
    return places.folder / "etc" / name
