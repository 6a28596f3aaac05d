"""``roost events``: what is decided and what happens to instances, line by line as it happens."""

import time
from itertools import islice
from typing import Any

import click
import msgspec

from roost.cli.backend import Where, asking
from roost.cli.instance.wait import uuid_of
from roost.cli.text.plain_text import json_text, moment, shown
from roost.cli.token_source import token as token_option
from roost.client.event_stream import Following, Told

_URL = "http://127.0.0.1:8780"
_PAUSE_S = 1.0
_LOST = "events_lost"


@click.command("events", short_help="Follow what happens, line by line.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only types that begin so; may be repeated.")
@click.option("--instance", metavar="INSTANCE", help="Only what is about this instance, by its uuid or name.")
@click.option("--after", default="", metavar="ID", help="Go on after this event.  [the next one]")
@click.option("--count", type=click.IntRange(1), metavar="N", help="End after so many.  [never]")
@click.option("--json", "is_json", is_flag=True, help="For programs: a line of JSON each.")
@click.option("--url", envvar="ROOST_URL", default=_URL, metavar="URL", help=f"Of the server.  [{_URL}]")
@token_option()
def events(
    *, types: tuple[str, ...], instance: str | None, after: str, count: int | None, is_json: bool, url: str, token: str
) -> None:
    """Follow what is decided and what happens to instances, operations and agents.

    Where the connection ends it goes on with another one, and says so on standard error.
    """
    uuid = None if instance is None else _uuid(instance, url=url, token=token)
    following = Following(
        url,
        token=token,
        last_id=after,
        pause=lambda: time.sleep(_PAUSE_S),
        warn=lambda problem: click.echo(f"roost: {shown(problem)}; it is asked again", err=True),
    )
    wanted = (told for told in following.events() if _is_wanted(told, types=types, instance=uuid))
    for told in islice(wanted, count):
        click.echo(json_text(msgspec.json.encode(told.body)) if is_json else _line(told))


def _uuid(instance: str, *, url: str, token: str) -> str:
    with asking(Where(url=url, token=token, config=None, data=None), is_read=True) as api:
        return uuid_of(api, instance)


def _is_wanted(told: Told, *, types: tuple[str, ...], instance: str | None) -> bool:
    if told.event_type == _LOST:
        click.echo("roost: events were lost: they are no longer kept, or were told by another process", err=True)
        return False
    if types and not told.event_type.startswith(types):
        return False
    return instance is None or instance.lower() in _instances(told.body.get("payload", {}))


def _instances(payload: dict[str, Any]) -> set[str]:
    """Return the uuids of the instances that an event is about."""
    placed = {each["instance_uuid"] for each in payload.get("placed", [])}
    return {*payload.get("instance_uuids", []), *placed, *filter(None, [payload.get("instance_uuid")])}


def _line(told: Told) -> str:
    """Return an event as people read it."""
    payload = told.body["payload"]
    words = payload["told"] if payload["about"] == "story" else _of_decision(payload)
    about = payload.get("instance_uuid") or payload.get("operation_uuid") or payload.get("decision_uuid") or "-"
    more = " ".join(f"{name}={value}" for name, value in words.items() if value)
    return shown(f"{moment(told.body['time_s'])}  {told.event_type}  {about}  {more}".rstrip())


def _of_decision(payload: dict[str, Any]) -> dict[str, Any]:
    hosts = ",".join(dict.fromkeys(each["host"] for each in payload["placed"]))
    return {
        "count": payload["count"],
        "flavor": payload["flavor"],
        "outcome": payload["outcome"],
        "hosts": hosts,
        "reason": payload["reason"],
    }
