"""``roost plan``: plan moves of instances."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import click

from roost.cli.backend import BackendOptions, backend_options, open_api
from roost.cli.commands.host_drain import HostScope, find_hosts, host_options
from roost.cli.commands.plan_apply import apply
from roost.cli.complete_name import NameType
from roost.cli.instance.request_fields import (
    FLAVOR_OPTION,
    GROUP_OPTION,
    IMAGE_OPTION,
    REQUEST_OPTION,
    read_request_document,
    request_fields,
)
from roost.cli.options import Command
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import find_decision, suggest_aggregate
from roost.cli.views.plan_view import balance_lines, consolidation_lines, drain_lines, room_lines
from roost.errors import NoValidHost
from roost.model.evidence.move_plans import FLEET_MOVES_LIMIT, FLEET_MOVES_MAX, MOVES_LIMIT, MOVES_MAX

_ZONE_OPTION = click.option(
    "--zone", type=NameType("zone"), metavar="NAME", help="Only hosts of this availability zone."
)


def _fleet_moves_option(default: int = FLEET_MOVES_MAX) -> Callable[[Command], Command]:
    """Return the option for the maximum number of moves of a plan for many hosts."""
    return click.option(
        "--moves",
        type=click.IntRange(1, FLEET_MOVES_LIMIT),
        default=default,
        show_default=True,
        metavar="N",
        help="Maximum number of moves.",
    )


@click.group("plan", short_help="Plan and apply moves of instances.")
def plan() -> None:
    """Plan moves of instances, and apply plans."""


plan.add_command(apply)


@plan.command("make-room", short_help="Plan the fewest moves to make room for a request.")
@click.argument("name", type=NameType("decision"), metavar="[NAME]", required=False)
@FLAVOR_OPTION
@IMAGE_OPTION
@GROUP_OPTION
@click.option("--zone", type=NameType("zone"), metavar="NAME", help="Availability zone of the instance.")
@click.option("--project", metavar="ID", help="Project of the instance.")
@REQUEST_OPTION
@click.option(
    "--moves",
    type=click.IntRange(1, MOVES_LIMIT),
    default=MOVES_MAX,
    show_default=True,
    metavar="N",
    help="Maximum number of moves.",
)
@output_options(can_watch=False)
@backend_options
def make_room(
    *, name: str | None, request: str | None, moves: int, output: Output, backend: BackendOptions, **fields: Any
) -> None:
    """Plan the fewest moves of instances to make room for a refused request. Nothing moves.

    NAME is a decision, or an instance for its newest one, as for `roost why`. Instead, give the request itself, as for
    `roost instance create`. Every plan is rehearsed: each move and the request pass all rules, in order. Without a
    plan, the exit code is 6.
    """
    given = {**({} if request is None else read_request_document(request)), **request_fields(fields)}
    if (name is None) == (not given):
        raise click.UsageError("give NAME, or a request by --flavor or --request")
    if given and "flavor" not in given:
        raise click.UsageError("the flavor is missing: give --flavor, or put it into the file of --request")
    with open_api(backend, is_read_only=True) as api:
        question = {"request": given} if name is None else {"decision": find_decision(api, name)}
        answer = api.request("POST", "plans", "make-room", body={**question, "moves": moves})
    output.print_document(answer, lambda: room_lines(answer))
    if not answer["host"]:
        raise NoValidHost(answer["problem"])


@plan.command("consolidate", short_help="Plan moves to empty as many hosts as possible.")
@click.option("--hosts", type=click.IntRange(min=1), metavar="N", help="Maximum number of hosts to empty.")
@click.option(
    "--share",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="PERCENT",
    help="Instead of --hosts: percent of the hosts, rounded up.",
)
@_ZONE_OPTION
@_fleet_moves_option()
@output_options(can_watch=False)
@backend_options
def consolidate(
    *, hosts: int | None, share: float | None, zone: str | None, moves: int, output: Output, backend: BackendOptions
) -> None:
    """Plan moves to empty as many hosts as possible, those with the fewest instances first. Nothing moves.

    Empty hosts take no instances. Every plan is rehearsed: each move passes all rules, in order. If no host can be
    emptied, the exit code is 6.
    """
    if hosts is not None and share is not None:
        raise click.UsageError("give one of --hosts and --share")
    body = {"hosts": hosts, "share": share, "zone": zone, "moves": moves}
    with open_api(backend, is_read_only=True) as api:
        answer = api.request("POST", "plans", "consolidate", body=body)
    output.print_document(answer, lambda: consolidation_lines(answer))
    if not answer["emptied"]:
        raise NoValidHost(answer["problem"])


@plan.command("drain", short_help="Plan moves to empty given hosts.")
@host_options("Empty")
@_fleet_moves_option(FLEET_MOVES_LIMIT)
@click.option(
    "--extra",
    type=click.IntRange(0, FLEET_MOVES_LIMIT),
    default=FLEET_MOVES_MAX,
    show_default=True,
    metavar="N",
    help="Maximum number of moves of instances on other hosts, to make room; they count as moves, too.",
)
@output_options(can_watch=False)
@backend_options
def drain(*, scope: HostScope, moves: int, extra: int, output: Output, backend: BackendOptions) -> None:
    """Plan moves to empty hosts, with moves of other instances to make room where necessary. Nothing moves.

    HOST is the name of a service. The hosts take no instances. Every plan is rehearsed: each move passes all rules, in
    order. The plan has the moves of all instances that can leave, and the reasons why others stay. If a host is not
    emptied, the exit code is 6.
    """
    with open_api(backend, is_read_only=True) as api:
        hosts = find_hosts(api, scope)
        with suggest_aggregate(api, hosts[0]) if len(hosts) == 1 else nullcontext():
            answer = api.request("POST", "plans", "drain", body={"hosts": hosts, "moves": moves, "extra": extra})
    output.print_document(answer, lambda: drain_lines(answer))
    if answer["problem"]:
        raise NoValidHost(answer["problem"])


@plan.command("balance", short_help="Plan moves to make the used shares of hosts more equal.")
@click.option(
    "--class",
    "resource_class",
    default="VCPU",
    show_default=True,
    metavar="NAME",
    help="Resource class of the used shares, like VCPU, MEMORY_MB or DISK_GB.",
)
@_ZONE_OPTION
@_fleet_moves_option()
@output_options(can_watch=False)
@backend_options
def balance(*, resource_class: str, zone: str | None, moves: int, output: Output, backend: BackendOptions) -> None:
    """Plan moves from full to empty hosts, so that the used shares of a resource are more equal. Nothing moves.

    The plan ends when no move of an instance gains much. Every plan is rehearsed: each move passes all rules, in
    order. If the hosts are balanced already, the plan has no moves.
    """
    body = {"resource_class": resource_class, "zone": zone, "moves": moves}
    with open_api(backend, is_read_only=True) as api:
        answer = api.request("POST", "plans", "balance", body=body)
    output.print_document(answer, lambda: balance_lines(answer))
