"""``roost host set``: disable, enable or force down services, one or several."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from roost.cli import options
from roost.cli.backend import Api, BackendOptions, backend_options, open_api
from roost.cli.complete_name import NameType
from roost.cli.output.list_view import Column, ListView, fault_field, field
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import suggest_aggregate
from roost.cli.views.host_sections import state_text
from roost.errors import BadRequest, NotFound, RoostError

_RESULTS = ListView(
    nouns="hosts",
    columns=(
        field("host"),
        Column(name="before", value=lambda row: row["before"] or None, kind="prose"),
        Column(name="after", value=lambda row: row["after"] or None, kind="prose"),
        fault_field("problem"),
    ),
)


@click.command("set", short_help="Disable, enable or force down services.")
@click.argument("names", type=NameType("host"), metavar="[HOST]...", nargs=-1)
@click.option(
    "--aggregate",
    type=NameType("aggregate"),
    metavar="NAME",
    help="Change all hosts of this aggregate: its name or uuid.",
)
@click.option("--zone", type=NameType("zone"), metavar="NAME", help="Change all hosts of this availability zone.")
@options.exclusive_flags("disabled", ("--disable", "Stop new placements."), ("--enable", "Resume new placements."))
@click.option("--reason", metavar="TEXT", help="Reason for disabling, up to 255 characters.")
@options.exclusive_flags(
    "forced_down",
    ("--force-down", "Count the service as down, regardless of its reports."),
    ("--no-force-down", "Use the reports of the service again."),
)
@click.option(
    "--max-hosts",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Change nothing if there are more hosts.",
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Print the hosts and their new states, and change nothing.")
@output_options(can_watch=False)
@backend_options
def set_(
    *,
    names: tuple[str, ...],
    aggregate: str | None,
    zone: str | None,
    disabled: bool | None,
    reason: str | None,
    forced_down: bool | None,
    max_hosts: int,
    is_dry: bool,
    output: Output,
    backend: BackendOptions,
) -> None:
    """Disable, enable or force down services, with all their nodes. HOST is the name of a service.

    Show the service, or with several hosts, --aggregate, --zone or --dry-run the result of each host. End with exit
    code 1 if one of several hosts could not be changed.
    """
    if not names and aggregate is None and zone is None:
        raise click.UsageError("give HOST, --aggregate or --zone")
    changes = {"disabled": disabled, "disabled_reason": reason, "forced_down": forced_down}
    body = {key: value for key, value in changes.items() if value is not None}
    if not body:
        raise click.UsageError("nothing to change: give --disable, --enable, --reason, --force-down or --no-force-down")
    with open_api(backend, is_read_only=is_dry) as api:
        if len(names) == 1 and aggregate is None and zone is None and not is_dry:
            with suggest_aggregate(api, names[0]):
                answer = api.request("PATCH", "services", names[0], body=body)
            output.print_object(answer)
            return
        nodes = _find_nodes(api, names, aggregate=aggregate, zone=zone)
        if len(nodes) > max_hosts:
            raise BadRequest(f"{len(nodes):,} hosts are more than {max_hosts:,}; nothing is changed: raise --max-hosts")
        results = [_change(api, host, node=node, body=body, is_dry=is_dry) for host, node in nodes.items()]
    output.print_document(results, lambda: [*_RESULTS.to_lines(results, "table"), "", _total(results, is_dry=is_dry)])
    failures = sum(bool(result["problem"]) for result in results)
    if failures:
        verb = "would not be" if is_dry else "were not"
        raise RoostError(f"{failures:,} of {len(results):,} hosts {verb} changed")


def _find_nodes(
    api: Api, names: Sequence[str], *, aggregate: str | None, zone: str | None
) -> dict[str, Mapping[str, Any] | None]:
    """Return services, each with one of its nodes; without a node: the name is unknown."""
    found: dict[str, Mapping[str, Any] | None] = {}
    for name in names:
        named = (each for each in api.iterate("hosts", name=name) if each["host"].lower() == name.lower())
        node = next(named, None)
        found[name if node is None else node["host"]] = node
    if aggregate is not None or zone is not None:
        nodes = api.list_all("hosts", aggregate=aggregate, zone=zone)
        if not nodes:
            raise NotFound("host", "", message="no host is in this aggregate or zone")
        found |= {each["host"]: each for each in nodes}
    return found


def _change(
    api: Api, host: str, *, node: Mapping[str, Any] | None, body: Mapping[str, Any], is_dry: bool
) -> dict[str, str]:
    """Change a service; return its state before and after, and the problem, if any."""
    if node is None:
        return {"host": host, "before": "", "after": "", "problem": str(NotFound("host", host))}
    before = _state(node)
    if is_dry:
        return {"host": host, "before": before, "after": ", ".join(_promise(node, body)), "problem": ""}
    try:
        answer = api.request("PATCH", "services", host, body=body)
    except RoostError as error:
        return {"host": host, "before": before, "after": before, "problem": str(error)}
    return {"host": host, "before": before, "after": _state(answer), "problem": ""}


def _state(node: Mapping[str, Any]) -> str:
    reason = node["disabled_reason"]
    return f"{state_text(node)} ({reason})" if reason else state_text(node)


def _promise(node: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of the future state of a service."""
    is_disabled = body.get("disabled", node["disabled"])
    reason = body.get("disabled_reason", node["disabled_reason"]) if is_disabled else ""
    yield ("disabled" if is_disabled else "enabled")
    is_forced_down = body.get("forced_down", node["forced_down"])
    # After the force is lifted, recent reports decide whether the service is up. Only the server has them.
    was_forced = node["forced_down"] and not is_forced_down
    yield (
        ("forced down" if is_forced_down else "by its reports" if was_forced else "up" if node["up"] else "down")
        + (f" ({reason})" if reason else "")
    )


def _total(results: Sequence[Mapping[str, str]], *, is_dry: bool) -> str:
    """Return the number of changed hosts, and of those with the state already."""
    same = sum(not each["problem"] and each["before"] == each["after"] for each in results)
    failures = sum(bool(each["problem"]) for each in results)
    changed = len(results) - same - failures
    verb = "would change" if is_dry else "changed"
    return f"{changed:,} {verb}, {same:,} unchanged, {failures:,} failed"
