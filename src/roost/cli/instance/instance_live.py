"""``roost instance``: what lets one leave its host while it runs, or when its host is gone."""

from typing import Any

import click

from roost.cli.backend import Api, Where, as_json, asking, told, where
from roost.cli.instance.wait import ask, check_served, wait, waited
from roost.cli.text.progress import progress_bar
from roost.cli.text.tables import Table, aligned
from roost.errors import RoostError


@click.command("live-migrate", short_help="Let an instance go to another host while it runs.")
@click.argument("name", metavar="INSTANCE")
@click.option("--host", metavar="NAME", help="The service that it goes to, if filters keep that.")
@wait
@as_json
@where
def live_migrate(*, name: str, host: str | None, is_waited: bool, is_json: bool, place: Where) -> None:
    """Let an instance go to another host while it runs; where that fails it stays, and its fault says why."""
    ask("live-migrate", name, body={"host": host}, is_waited=is_waited, is_json=is_json, place=place)


@click.command("evacuate", short_help="Build an instance anew elsewhere, since its host is gone.")
@click.argument("name", metavar="INSTANCE", required=False)
@click.option("--host", metavar="NAME", help="All instances of this service, each for itself.")
@click.option("--to", "target", metavar="NAME", help="The service that it goes to, if filters keep that.")
@wait
@as_json
@where
def evacuate(
    *, name: str | None, host: str | None, target: str | None, is_waited: bool, is_json: bool, place: Where
) -> None:
    """Build an instance anew on another host, since its own is gone; or with --host all instances of a host.

    What its host still has of it is destroyed when that is back. With --host, exit code 1 if one was not taken, or with
    --wait not done.
    """
    if (name is None) is (host is None):
        raise click.UsageError("say which instance, or all of which host with --host")
    if name is not None:
        ask("evacuate", name, body={"host": target}, is_waited=is_waited, is_json=is_json, place=place)
        return
    check_served(place, is_waited=is_waited)
    with asking(place, is_read=False) as api:
        found = api.listed("instances", host=host)
        if not found:
            api.ask("GET", "agents", str(host))  # Refuses a host that is not known.
        rows = [_asked(api, each, target) for each in found if each["status"]]
        if is_waited:
            rows = _waited(api, rows)
    told(rows, is_json=is_json, lines=lambda: _lines(rows, host))
    bad = sum(row["outcome"] in {"refused", "failed"} for row in rows)
    if bad:
        raise RoostError(f"{bad} of {len(rows)} instances of {host} were not evacuated")


COMMANDS: tuple[click.Command, ...] = (live_migrate, evacuate)


def _asked(api: Api, instance: dict[str, Any], target: str | None) -> dict[str, Any]:
    """Ask for the evacuation of one of many; return what came of it."""
    row = {"name": instance["name"], "uuid": instance["uuid"], "operation": None, "host": instance["host"]}
    try:
        accepted = api.ask("POST", "instances", instance["uuid"], "evacuate", body={"host": target})
    except RoostError as error:
        return {**row, "outcome": "refused", "problem": str(error)}
    return {**row, "operation": accepted["operation"], "outcome": "open", "problem": ""}


def _waited(api: Api, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows when all evacuations are over, and show meanwhile how many are."""
    found: list[dict[str, Any]] = []
    with progress_bar("evacuations over") as progress:
        for row in rows:
            found.append(_over(api, row))
            progress(len(found), len(rows))
    return found


def _over(api: Api, row: dict[str, Any]) -> dict[str, Any]:
    if row["operation"] is None:
        return row
    found = waited(api, row["operation"])
    (subject,) = found["instances"]
    return {**row, "outcome": found["outcome"], "host": subject["host"], "problem": found["problem"]}


def _lines(rows: list[dict[str, Any]], host: str | None) -> list[str]:
    table: Table = [("name", "uuid", "outcome", "host", "problem")]
    table += [
        (row["name"] or "-", row["uuid"], row["outcome"], row["host"] or "-", row["problem"] or "-") for row in rows
    ]
    done = sum(row["outcome"] == "done" for row in rows)
    bad = sum(row["outcome"] in {"refused", "failed"} for row in rows)
    if not rows:
        return [f"no instance is on {host}"]
    total = f"{len(rows)} instances of {host}: {done} done, {len(rows) - done - bad} open, {bad} not evacuated"
    return [*aligned(table, indent=0, right=()), "", total]
