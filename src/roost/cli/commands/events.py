"""``roost events``: follow the events of a server."""

import time
from itertools import islice
from typing import Any

import click

from roost.cli.backend import server_api
from roost.cli.complete_name import NameType
from roost.cli.connection.find_connection import DEFAULT_URL, Connection, connection_options, find_connection
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import find_instance
from roost.cli.text.plain_text import escape_text, format_time
from roost.client.event_stream import EventFollower
from roost.client.library.event_lines import Event

_PAUSE_S = 1.0
_LOST = "events_lost"


@click.command("events", short_help="Follow the events of a server.")
@click.option(
    "--type",
    "types",
    type=NameType("event_type"),
    multiple=True,
    metavar="TYPE",
    help="Only events whose type has this prefix; repeatable.",
)
@click.option(
    "--instance", type=NameType("instance"), metavar="INSTANCE", help="Only events of this instance: its uuid or name."
)
@click.option(
    "--after", default="", metavar="ID", help="Id of the last event that you have; resume after it.  [new events only]"
)
@click.option("--count", type=click.IntRange(1), metavar="N", help="Stop after N events.  [never]")
@output_options(can_watch=False)
@connection_options
def events(
    *,
    types: tuple[str, ...],
    instance: str | None,
    after: str,
    count: int | None,
    output: Output,
    **connection: Any,
) -> None:
    """Follow decisions and the events of instances, operations and agents.

    Print one line per event: time, type, subject and details. After a lost connection, reconnect and resume, with a
    note on standard error. Stop with Ctrl-C.
    """
    if types:
        from roost.cli.event_types import check_types

        check_types(types)
    found = find_connection(**connection)
    uuid = None if instance is None else _uuid(instance, found)
    follower = EventFollower(
        found.url or DEFAULT_URL,
        token=found.token,
        last_id=after,
        pause=lambda: time.sleep(_PAUSE_S),
        warn=lambda problem: click.echo(f"roost: {escape_text(problem)}; reconnecting", err=True),
    )
    matches = (event for event in follower.events() if _is_match(event, types=types, instance=uuid))
    for event in islice(matches, count):
        output.print_entry(event.body, _line(event) if output.is_text else "")


def _uuid(instance: str, connection: Connection) -> str:
    return find_instance(server_api(connection), instance)


def _is_match(event: Event, *, types: tuple[str, ...], instance: str | None) -> bool:
    if event.event_type == _LOST:
        click.echo(
            "roost: events were lost: the server dropped them, or the client reached another server process", err=True
        )
        return False
    if types and not event.event_type.startswith(types):
        return False
    return instance is None or instance.lower() in _instance_uuids(event.body.get("payload", {}))


def _instance_uuids(payload: dict[str, Any]) -> set[str]:
    """Return the uuids of the instances of an event."""
    placed = {each["instance_uuid"] for each in payload.get("placed", [])}
    return {*payload.get("instance_uuids", []), *placed, *filter(None, [payload.get("instance_uuid")])}


def _line(event: Event) -> str:
    """Return an event as one line of text."""
    payload = event.body["payload"]
    words = _decision_fields(payload) if payload["about"] == "decision" else payload["told"]
    if payload["about"] == "change":
        words = {"user": payload["user_id"], "project": payload["project_id"], **words}
    names = (payload.get(name) for name in ("object", "instance_uuid", "operation_uuid", "decision_uuid"))
    about = next(filter(None, names), "-")
    more = " ".join(f"{name}={value}" for name, value in words.items() if value)
    return escape_text(f"{format_time(event.body['time_s'])}  {event.event_type}  {about}  {more}".rstrip())


def _decision_fields(payload: dict[str, Any]) -> dict[str, Any]:
    hosts = ",".join(dict.fromkeys(each["host"] for each in payload["placed"]))
    return {
        "count": payload["count"],
        "flavor": payload["flavor"],
        "outcome": payload["outcome"],
        "hosts": hosts,
        "reason": payload["reason"],
    }
