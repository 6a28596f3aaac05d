"""``roost host drain``: move all instances off hosts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

import click

from roost.cli import options
from roost.cli.backend import Api, BackendOptions, backend_options, open_api
from roost.cli.complete_name import NameType
from roost.cli.instance.wait import check_served, get_operation, watch_operation
from roost.cli.options import Command
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import suggest_aggregate
from roost.cli.text.plain_text import escape_text
from roost.cli.text.progress import progress_bar
from roost.cli.views.operation_view import DRAINED, PLANNED_MOVES, stay_advice
from roost.errors import Conflict, NotFound, RoostError

# Seconds of one long poll of the oldest drain; the others are polled in between.
_POLL_S = "1"
_REASON = "it is drained"


class HostScope(NamedTuple):
    """The hosts of a command."""

    names: tuple[str, ...]
    scopes: dict[str, str]  # aggregate, zone or rack


def host_options(verb: str) -> Callable[[Command], Command]:
    """Add names and scopes of hosts to a command, as its argument ``scope``.

    Args:
        verb: what the command does with the hosts, for the help.
    """

    def add_options(command: Command) -> Command:
        @wraps(command)
        def run(*arguments: Any, **more: Any) -> Any:
            names = more.pop("names")
            values = {key: more.pop(key) for key in ("aggregate", "zone", "rack")}
            scopes = {key: value for key, value in values.items() if value is not None}
            if not names and not scopes:
                raise click.UsageError("give HOST, --aggregate, --zone or --rack")
            return command(*arguments, scope=HostScope(names, scopes), **more)

        for add in (
            click.option("--rack", metavar="NAME", help=f"{verb} all hosts of this rack."),
            click.option(
                "--zone", type=NameType("zone"), metavar="NAME", help=f"{verb} all hosts of this availability zone."
            ),
            click.option(
                "--aggregate",
                type=NameType("aggregate"),
                metavar="NAME",
                help=f"{verb} all hosts of this aggregate: its name or uuid.",
            ),
            click.argument("names", type=NameType("host"), metavar="[HOST]...", nargs=-1),
        ):
            run = add(run)
        return run  # type: ignore[return-value]  # has the command's parameters except ``scope``

    return add_options


def find_hosts(api: Api, scope: HostScope) -> list[str]:
    """Return the services of a command, each once: those named, and the hosts in all scopes."""
    hosts = list(scope.names)
    if scope.scopes:
        found = [each["host"] for each in api.list_all("hosts", **scope.scopes)]
        if not found:
            raise NotFound("host", "", message=f"no host is in this {' and '.join(scope.scopes)}")
        hosts += found
    return list({host.lower(): host for host in hosts}.values())


@click.command("drain", short_help="Move all instances off hosts.")
@host_options("Drain")
@click.option("--dry-run", "is_dry", is_flag=True, help="Print the planned moves, and make none.")
@click.option("--check", "is_checked", is_flag=True, help="Plan first; change nothing if an instance would stay.")
@click.option(
    "--at-once", type=click.IntRange(1, 100), default=2, metavar="N", help="Number of concurrent moves per host.  [2]"
)
@click.option(
    "--hosts-at-once", type=click.IntRange(1, 100), default=1, metavar="N", help="Number of concurrent drains.  [1]"
)
@options.exclusive_flags(
    "is_disabling",
    ("--disable", "Disable the hosts first; this is the default."),
    ("--no-disable", "Do not disable the hosts."),
    default=True,
)
@output_options(can_watch=False)
@backend_options
def drain(
    *,
    scope: HostScope,
    is_dry: bool,
    is_checked: bool,
    at_once: int,
    hosts_at_once: int,
    is_disabling: bool,
    output: Output,
    backend: BackendOptions,
) -> None:
    """Move all instances off hosts, and wait until all moves end. HOST is the name of a service.

    Running instances migrate live if possible, else they are stopped first. Shelved instances are offloaded. Print the
    result of each instance, and a remedy for each one that remains. Several hosts are all disabled before the first
    move. End with exit code 1 if an instance remains; `roost plan drain` finds moves of other instances that make room
    for it. After Ctrl-C the server continues the drains in progress.
    """
    check_served(backend, is_waiting=not is_dry)
    body = {"dry_run": is_dry, "at_once": at_once, "disable": is_disabling}
    with open_api(backend, is_read_only=is_dry) as api:
        hosts = find_hosts(api, scope)
        if is_checked and not is_dry:
            _check_plan(api, hosts, body, output=output)
        if len(hosts) == 1 and scope.names:
            _drain_one(api, hosts[0], body, output=output)
            return
        results = _plan_all(api, hosts, body) if is_dry else _drain_all(api, hosts, body, hosts_at_once=hosts_at_once)
    is_changed = is_disabling and not is_dry
    hints = _enable_hint([each["host"] for each in results if each["operation"]]) if is_changed else []
    output.print_document(results, lambda: [*_result_lines(results, is_dry=is_dry), *hints])
    failures = sum(bool(result["problem"]) for result in results)
    if failures:
        raise RoostError(f"{failures:,} of {len(results):,} hosts were not drained")


def _check_plan(api: Api, hosts: Sequence[str], body: Mapping[str, object], *, output: Output) -> None:
    """Plan the drains of all hosts together.

    Raises:
        RoostError: an instance would stay, or a host cannot be drained; the plan is printed.
    """
    results = _plan_all(api, hosts, {**body, "dry_run": True})
    failures = sum(bool(result["problem"]) for result in results)
    if failures:
        output.print_document(results, lambda: _result_lines(results, is_dry=True))
        raise RoostError(f"{failures:,} of {len(results):,} hosts would not be drained: nothing was changed")


def _drain_one(api: Api, host: str, body: Mapping[str, object], *, output: Output) -> None:
    """Drain one host and print its operation, or plan its drain.

    Raises:
        RoostError: an instance remains.
    """
    with suggest_aggregate(api, host):
        answer = api.request("POST", "hosts", host, "drain", body=body)
    if body["dry_run"]:
        output.print_document(answer, lambda: _plan_lines(answer))
        return
    answer = watch_operation(
        api,
        get_operation(api, answer["operation"]),
        title="instances gone",
        count_done=lambda operation: len(operation["instances"]) - len(_remaining(operation)),
    )
    output.print_document(answer, lambda: [*_lines(answer), *(_enable_hint([host]) if body["disable"] else ())])
    if answer["outcome"] == "failed":
        raise RoostError(answer["problem"])


def _plan_all(api: Api, hosts: Sequence[str], body: Mapping[str, object]) -> list[dict[str, Any]]:
    """Plan the drains of all hosts, one after the other; return a result for each, in order."""
    plan, problems = None, {}
    for at, host in enumerate(hosts):
        try:
            plan = api.request("POST", "hosts", host, "drain", body={**body, "with_hosts": hosts[at + 1 :]})
            break
        except (NotFound, Conflict) as error:  # Only the drains of the further hosts are planned.
            problems[host] = str(error)
    if plan is not None:
        problems |= plan["problems"]
    results: list[dict[str, Any]] = []
    for host in hosts:
        if plan is None or host in problems:
            results.append({"host": host, "plan": None, "problem": problems[host]})
            continue
        moves = [each for each in plan["moves"] if each["source"].lower() == host.lower()]
        staying = sum(not each["how"] for each in moves)
        problem = f"{staying:,} of {len(moves):,} instances would stay on {host}" if staying else ""
        results.append({"host": host, "plan": {"host": host, "moves": moves}, "problem": problem})
    return results


def _drain_all(
    api: Api, hosts: Sequence[str], body: Mapping[str, object], *, hosts_at_once: int
) -> list[dict[str, Any]]:
    """Drain hosts, some at a time; return a result for each, in order.

    All hosts are disabled before the first move, so that no instance moves to a host that is drained later.
    """
    results: dict[str, dict[str, Any]] = {host: {"host": host, "operation": None, "problem": ""} for host in hosts}
    waiting = list(hosts)
    if body["disable"]:
        for host in hosts:
            try:
                api.request("PATCH", "services", host, body={"disabled": True, "disabled_reason": _REASON})
            except RoostError as error:
                results[host]["problem"] = str(error)
                waiting.remove(host)
    going: dict[str, str] = {}  # host -> uuid of its operation
    with progress_bar("hosts drained") as progress:
        while waiting or going:
            while waiting and len(going) < hosts_at_once:
                host = waiting.pop(0)
                try:
                    going[host] = api.request("POST", "hosts", host, "drain", body=body)["operation"]
                except RoostError as error:
                    results[host]["problem"] = str(error)
            for at, (host, uuid) in enumerate(list(going.items())):
                operation = get_operation(api, uuid, wait_s="" if at else _POLL_S)
                if operation["outcome"] != "open":
                    results[host] |= {"operation": operation, "problem": operation["problem"]}
                    del going[host]
            progress(len(hosts) - len(waiting) - len(going), len(hosts))
    return list(results.values())


def _remaining(operation: Mapping[str, Any]) -> list[str]:
    """Return the uuids of the instances that are still on the host."""
    host = _find_drained_host(operation["story"])
    return [
        each["uuid"]
        for each in operation["instances"]
        if each["host"].lower() == host.lower() and each["status"] != "DELETED"
    ]


def _find_drained_host(story: Iterable[dict[str, Any]]) -> str:
    return next((str(each["told"]["host"]) for each in story if each["kind"] == "drain.asked"), "")


def _lines(operation: Mapping[str, Any]) -> list[str]:
    """Return the lines of a finished drain: the result of each instance."""
    problems = {
        each["instance"]: each["told"]["problem"] for each in operation["story"] if each["kind"] == "drain.stayed"
    }
    remaining = set(_remaining(operation))
    rows = [
        {**each, "problem": problems.get(each["uuid"], "") if each["uuid"] in remaining else ""}
        for each in operation["instances"]
    ]
    gone_count = len(rows) - len(remaining)
    advice = _advice_lines([row for row in rows if row["uuid"] in remaining], is_decided=True)
    return [*DRAINED.to_lines(rows, "table"), "", f"{gone_count:,} gone, {len(remaining):,} stayed", *advice]


def _advice_lines(rows: Iterable[Mapping[str, Any]], *, is_decided: bool) -> list[str]:
    """Return the remedy for each instance that stays."""
    return [escape_text(f"{row['name']}: {stay_advice(row, is_decided=is_decided)}") for row in rows]


def _enable_hint(hosts: Sequence[str]) -> list[str]:
    """Return a hint on how to enable the hosts again."""
    return [escape_text(f"{host} gets no new instances until `roost host set {host} --enable`") for host in hosts]


def _plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """Return the lines of a dry run."""
    staying = [each for each in plan["moves"] if not each["how"]]
    return [
        *PLANNED_MOVES.to_lines(plan["moves"], "table"),
        "",
        f"{len(plan['moves']) - len(staying):,} would go, {len(staying):,} would stay",
        *_advice_lines(staying, is_decided=False),
    ]


def _result_lines(results: Sequence[Mapping[str, Any]], *, is_dry: bool) -> list[str]:
    """Return the lines of several drains or plans: one section per host, and the total."""
    lines: list[str] = []
    gone = stayed = 0
    for result in results:
        document = result["plan" if is_dry else "operation"]
        outcome = "all instances would go" if is_dry else "drained"
        lines += [escape_text(f"{result['host']}: {result['problem'] or outcome}"), ""]
        if document is not None:
            lines += [*(_plan_lines(document) if is_dry else _lines(document)), ""]
            count = len(document["moves" if is_dry else "instances"])
            remaining = sum(not each["how"] for each in document["moves"]) if is_dry else len(_remaining(document))
            gone, stayed = gone + count - remaining, stayed + remaining
    words = ("would go", "would stay") if is_dry else ("gone", "stayed")
    return [*lines, f"in total: {gone:,} {words[0]}, {stayed:,} {words[1]}"]
