"""``roost host drain``: all instances of a host go elsewhere."""

from collections.abc import Iterable
from typing import Any

import click

from roost.cli.backend import Where, as_json, asking, told, where
from roost.cli.instance.wait import check_served, shown, watched
from roost.cli.text.tables import Table, aligned
from roost.errors import RoostError


@click.command("drain", short_help="Let all instances of a host go elsewhere.")
@click.argument("name", metavar="HOST")
@click.option("--dry-run", "is_dry", is_flag=True, help="Say which instance would go where, and move none.")
@click.option("--at-once", type=click.IntRange(1, 100), default=2, metavar="N", help="How many move together.  [2]")
@click.option("--disable/--no-disable", "is_disabling", default=True, help="Place nothing new on it, or still do.")
@as_json
@where
def drain(*, name: str, is_dry: bool, at_once: int, is_disabling: bool, is_json: bool, place: Where) -> None:
    """Let all instances of a host go elsewhere, and come back when none is on its way any more.

    HOST is a service. One that runs goes as it runs, or is stopped for it where that cannot be; one that is shelved
    gives back what it holds. Exit code 1 if one stays. Ended by Ctrl-C, the server goes on.
    """
    check_served(place, is_waited=not is_dry)
    body = {"dry_run": is_dry, "at_once": at_once, "disable": is_disabling}
    with asking(place, is_read=is_dry) as api:
        found = api.ask("POST", "hosts", name, "drain", body=body)
        if not is_dry:
            found = watched(
                api,
                shown(api, found["operation"]),
                title="instances gone",
                done=lambda now: len(now["instances"]) - len(_there(now)),
            )
    if is_dry:
        told(found, is_json=is_json, lines=lambda: _plan_lines(found))
        return
    told(found, is_json=is_json, lines=lambda: [*_lines(found), *(_back_lines(name) if is_disabling else ())])
    if found["outcome"] == "failed":
        raise RoostError(found["problem"])


def _there(found: dict[str, Any]) -> list[str]:
    """Return the uuids of the instances that are on the host still."""
    host = _host(found["story"])
    return [
        each["uuid"]
        for each in found["instances"]
        if each["host"].lower() == host.lower() and each["status"] != "DELETED"
    ]


def _host(story: Iterable[dict[str, Any]]) -> str:
    return next((str(each["told"]["host"]) for each in story if each["kind"] == "drain.asked"), "")


def _lines(found: dict[str, Any]) -> list[str]:
    """Return the lines of a host that was left: what became of each of its instances."""
    stayed = {each["instance"]: each["told"]["problem"] for each in found["story"] if each["kind"] == "drain.stayed"}
    there = set(_there(found))
    table: Table = [("name", "status", "host", "uuid", "problem")]
    for each in found["instances"]:
        problem = stayed.get(each["uuid"], "-") if each["uuid"] in there else "-"
        table.append((each["name"], each["status"], each["host"] or "-", each["uuid"], problem))
    gone = len(found["instances"]) - len(there)
    return [*aligned(table, indent=0, right=()), "", f"{gone:,} gone, {len(there):,} stayed"]


def _back_lines(name: str) -> list[str]:
    """Return the line that tells how a host is used again that was disabled to be left."""
    return [f"{name} gets no new instances until `roost host set {name} --enable`"]


def _plan_lines(found: dict[str, Any]) -> list[str]:
    """Return the lines of a rehearsal."""
    table: Table = [("name", "status", "how", "to", "uuid", "problem")]
    for each in found["moves"]:
        how = each["how"].replace("_", "-") or "stays"
        table.append((each["name"], each["status"], how, each["host"] or "-", each["uuid"], each["problem"] or "-"))
    staying = sum(not each["how"] for each in found["moves"])
    return [
        *aligned(table, indent=0, right=()),
        "",
        f"{len(found['moves']) - staying:,} would go, {staying:,} would stay",
    ]
