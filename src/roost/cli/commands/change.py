"""``roost change``: who changed what, and when."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import click

from roost.api.changes.change_note import KINDS
from roost.cli.backend import Api, BackendOptions, backend_options, show_list
from roost.cli.output.list_view import Column, ListView, Row, field, utc_field
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import find_aggregate, find_decision, find_group, find_instance
from roost.cli.text.moments import parse_moment
from roost.errors import AccessDenied, BadRequest, NotFound
from roost.model.names import uuid_bytes, uuid_form

# Maximum number of changes in one answer of the server.
_PAGE_MAX = 1000
# Kinds of objects by name.
_KINDS = ("host", "aggregate", "group", "instance", "provider", "flavor", "image", "decision", "operation")

_CHANGES = ListView(
    nouns="changes",
    columns=(
        utc_field("time", key="at_s"),
        field("user_id", head="user"),
        field("project_id", head="project"),
        field("kind", kind="keep"),
        field("object"),
        Column(
            name="details",
            value=lambda row: ", ".join(f"{name}: {text}" for name, text in row["details"].items()),
            kind="prose",
        ),
    ),
)


@click.group("change", short_help="Show who changed what, and when.")
def change() -> None:
    """Show the changes by clients: who changed what, and when."""


@change.command("list")
@click.option(
    "--object",
    "name",
    metavar="[KIND:]NAME",
    help="Only changes of this object, by name or uuid, like host-12, aggregate:rack7 or provider:host-12.",
)
@click.option("--user", metavar="USER", help="Only changes by this user id.")
@click.option("--project", metavar="PROJECT", help="Only changes by clients of this project id.")
@click.option(
    "--kind",
    metavar="KIND",
    help="Only changes of this kind, like host.disable, or all kinds for one type of object, like host.",
)
@click.option("--request", metavar="ID", help="Only changes of this request id.")
@click.option("--since", metavar="TIME", help="Only changes since then, like 90m, 12h or 7d ago, or 2026-01-31.")
@click.option("--until", metavar="TIME", help="Only changes until then, in the form of --since.")
@click.option(
    "--newest", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="Number of changes."
)
@click.option("--all", "is_all", is_flag=True, help="List all changes, not only the newest.")
@output_options(_CHANGES)
@backend_options
def list_(
    *,
    name: str | None,
    since: str | None,
    until: str | None,
    newest: int,
    is_all: bool,
    output: Output,
    backend: BackendOptions,
    **filters: str | None,
) -> None:
    """List changes, newest first. A note on standard error says if older changes exist.

    KIND is host, aggregate, group, instance, provider, flavor, image, decision or operation. Without it, NAME is looked
    up in the records, then among hosts, aggregates, groups and instances. End with exit code 4 for an unknown name.
    """
    times = {
        name: None if text is None else repr(parse_moment(text, option=f"--{name}"))
        for name, text in (("since", since), ("until", until))
    }
    # One more than shown, so that the first page tells whether older changes exist.
    limit = _PAGE_MAX if is_all else min(newest + 1, _PAGE_MAX)

    def fetch(api: Api) -> Iterator[Row]:
        uuid_or_name = None if name is None else _find_object(api, name)
        changes = api.iterate("changes", object=uuid_or_name, **filters, **times, limit=str(limit))
        yield from islice(changes, None if is_all else newest)
        if next(changes, None) is not None:
            click.echo("older changes exist; raise --newest, or give --all, to see them", err=True)

    show_list(_CHANGES, fetch, backend=backend, output=output)


def _find_object(api: Api, text: str) -> str:
    """Return the name or uuid by which records name an object.

    Args:
        text: a name or uuid, with or without its kind and a colon.

    Raises:
        NotFound: the name is unknown.
        BadRequest: several objects have it.
    """
    kind, colon, name = text.partition(":")
    if not colon or kind not in _KINDS:
        return _find_any(api, text)
    if uuid_bytes(name) is not None:
        return uuid_form(name)
    found = _find_current(api, kind, name)
    if found is None and _has_record(api, name):
        return name
    return found or _find_past(api, kind, name)


def _find_any(api: Api, name: str) -> str:
    """Return the object that records name, or the only host, aggregate, group or instance with a name."""
    if uuid_bytes(name) is not None:
        return uuid_form(name)
    if _has_record(api, name):
        return name
    found: dict[str, str] = {}
    for kind in ("host", "aggregate", "group", "instance"):
        with suppress(AccessDenied):
            each = _find_current(api, kind, name)
            if each is not None:
                found[kind] = each
    if not found:
        raise NotFound("object", name, message=f"no object is called {name!r}, and no record names it")
    if len(found) > 1:
        choices = " or ".join(f"{kind}:{name}" for kind in found)
        raise BadRequest(f"{len(found)} objects are called {name!r}; give {choices}")
    return next(iter(found.values()))


def _find_current(api: Api, kind: str, name: str) -> str | None:
    """Return the object of a kind as records name it; None: it does not exist now."""
    try:
        match kind:
            case "host":
                hosts = (each["host"] for each in api.iterate("hosts", name=name))  # A service may have several nodes.
                return next((str(host) for host in hosts if host.lower() == name.lower()), None)
            case "provider":
                return str(api.request("GET", "hosts", name)["uuid"])
            case "aggregate":
                return str(find_aggregate(api, name)["uuid"])
            case "group":
                return str(find_group(api, name)["uuid"])
            case "instance":
                return find_instance(api, name, with_deleted=True)
            case "decision":
                return find_decision(api, name)
            case "flavor" | "image":
                api.request("GET", f"{kind}s", name)
                return name
    except NotFound:
        return None
    return None


def _find_past(api: Api, kind: str, name: str) -> str:
    """Return the newest deleted object of a name.

    Raises:
        NotFound: no record names it.
    """
    if f"{kind}.delete" in KINDS:
        page = api.request("GET", "changes", query={"kind": f"{kind}.delete", "limit": str(_PAGE_MAX)})
        for each in page["changes"]:
            if each["details"].get("name") == name:
                return str(each["object"])
    raise NotFound(kind, name)


def _has_record(api: Api, name: str) -> bool:
    return bool(api.request("GET", "changes", query={"object": name, "limit": "1"})["changes"])
