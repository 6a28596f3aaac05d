"""``roost capacity``: count how many more instances fit, and find the scarce resource."""

import os
from typing import Literal

import click
import msgspec

from roost.cli.backend import BackendOptions, backend_options, open_api
from roost.cli.complete_name import NameType
from roost.cli.output.output_options import Output, format_option, output_options
from roost.cli.text.plain_text import escape_text
from roost.cli.text.progress import progress_bar
from roost.cli.text.reason_words import reason_words
from roost.cli.text.tables import Fit, Table, align
from roost.errors import BadRequest
from roost.model.evidence.capacity import LIMIT, PLACED_LIMIT, Capacity, HostCapacity, ScopeCapacity, Shortage
from roost.model.evidence.predicates import count_hosts
from roost.model.flavor import Flavor
from roost.model.request import Request

By = Literal["zone", "aggregate", "host"]


class _Question(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of the command."""

    flavors: tuple[str, ...]
    is_for_known: bool
    requests: list[Request]
    by: By
    limit: int | None


_ZONES_SHOWN = 6  # columns of a table, to fit a screen


@click.command("capacity", short_help="Count how many more instances fit.")
@click.option(
    "--flavor",
    "flavors",
    type=NameType("flavor"),
    multiple=True,
    metavar="NAME|FILE|AMOUNTS",
    help="A stored flavor, a JSON file, or amounts like vcpus=4,memory_mb=8192,root_gb=20; repeatable.",
)
@click.option(
    "--known-flavors", "is_for_known", is_flag=True, help="Count all stored flavors and all shapes requested before."
)
@click.option(
    "--request", "requests", multiple=True, metavar="FILE", help="File of a request, JSON; - is standard input."
)
@click.option(
    "--by",
    type=click.Choice(["zone", "aggregate", "host"]),
    default="zone",
    show_default=True,
    help="Parts of the fleet to count separately.",
)
@click.option(
    "--top", type=click.IntRange(min=1), default=20, show_default=True, help="Number of parts in text output."
)
@click.option(
    "--limit",
    type=int,
    show_default=f"{LIMIT:,}; {PLACED_LIMIT:,} if instances must be placed one by one",
    help="Stop counting at this number.",
)
@format_option
@output_options(can_watch=False)
@backend_options
def capacity(
    *,
    flavors: tuple[str, ...],
    is_for_known: bool,
    requests: tuple[str, ...],
    by: By,
    top: int,
    limit: int | None,
    output: Output,
    backend: BackendOptions,
) -> None:
    """Count how many more instances could be placed one after another on the current fleet.

    The count respects all rules of a decision. Each zone, aggregate or host is counted as if it were the whole fleet.
    Print the count, the resource that runs out first, and a table of parts. With --data, --database or --config, read a
    database; servers can keep running.
    """
    from roost.cli.capacity_request import read_request

    if not (flavors or is_for_known or requests):
        raise click.UsageError("give --flavor, --known-flavors or --request")
    requested = [read_request(path) for path in requests]
    backend.check_one_source()
    question = _Question(flavors=flavors, is_for_known=is_for_known, requests=requested, by=by, limit=limit)
    results = _count_in_database(backend, question) if backend.is_local else _count_on_server(backend, question)
    output.print_document(
        results, lambda: _report(results[0], by=by, top=top) if len(results) == 1 else _flavor_lines(results, by=by)
    )


def _count_in_database(backend: BackendOptions, question: "_Question") -> list[Capacity]:
    from roost.app import open_reader

    with open_reader(backend.config, backend.data, database=backend.database, environ=os.environ) as roost:
        flavors = roost.flavors()
        shapes = roost.shapes() if question.is_for_known else []
        requests = [*_flavor_requests(question, flavors, {each.flavor.name for each in shapes}), *shapes]
        requests += question.requests
        results: list[Capacity] = []
        with progress_bar("capacity") as show:
            results.extend(
                roost.capacities(
                    requests,
                    by=(question.by,),
                    limit=question.limit,
                    progress=lambda done, total: show(100 * len(results) + 100 * done // total, 100 * len(requests)),
                )
            )
    return results


def _count_on_server(backend: BackendOptions, question: "_Question") -> list[Capacity]:
    from roost.model.documents.request_body import request_body

    if question.limit is not None and not 1 <= question.limit <= LIMIT:
        raise BadRequest(f"the limit must be 1..{LIMIT:,} instances, got {question.limit}")
    results: list[Capacity] = []
    with open_api(backend, is_read_only=True) as api, progress_bar("capacity") as show:
        wanted = {"requested": True, "shapes": True} if question.is_for_known else {"requested": True}
        answer = api.request("GET", "flavors", query=wanted)
        shapes = answer.get("shapes", [])
        flavors = msgspec.convert(answer["flavors"], list[Flavor])
        alone = _flavor_requests(question, flavors, {each["flavor"]["name"] for each in shapes})
        bodies = [*map(request_body, alone), *shapes, *map(request_body, question.requests)]
        for request in bodies:
            body = {"request": request, "by": [question.by], "limit": question.limit}
            results.append(msgspec.convert(api.request("POST", "capacity", body=body), Capacity))
            show(len(results), len(bodies))
    return results


def _flavor_requests(question: "_Question", known_flavors: list[Flavor], shape_names: set[str]) -> list[Request]:
    """Return a request for each flavor to count alone: those of the command line, and known ones without a shape."""
    from roost.cli.capacity_request import parse_flavors

    if question.is_for_known and not known_flavors:
        raise BadRequest("no flavor is stored or was requested yet: give one with --flavor")
    flavors = parse_flavors(question.flavors, known_flavors)
    if question.is_for_known:
        flavors += [flavor for flavor in known_flavors if flavor.name not in shape_names]
    return [Request(flavor=flavor) for flavor in flavors]


def _report(result: Capacity, *, by: str, top: int) -> list[str]:
    lines = [
        f"{_name(result)}: {_count_text(result)} more fit; {result.takers:,} of {result.hosts:,} hosts take one now"
    ]
    if result.exhausted:
        lines.append(f"runs out first: {_shortage_text(result.exhausted)}")
    lines += [f"take none now: {_refusal_text([each])}" for each in result.unfit]
    lines += [f"warning: {warning}" for warning in result.warnings]
    lines = [escape_text(line) for line in lines]
    table = _host_table(result) if by == "host" else _scope_table(result, by=by)
    if len(table) > 1:
        rest = len(table) - 1 - top
        lines += [
            "",
            *align(table[: top + 1], fits=("text", "keep", "prose")),
            *([f"  … and {rest:,} more: --top"] if rest > 0 else []),
        ]
        if not result.adds_up:
            lines.append("counted separately: together they may hold fewer than the sum")
    return lines


def _scope_table(result: Capacity, *, by: str) -> Table:
    table: Table = [(by, "hosts", "more fit")]
    scopes = result.zones if by == "zone" else result.aggregates
    table += [(scope.name or scope.uuid, f"{scope.hosts:,}", _count_text(scope)) for scope in _sort_scopes(scopes)]
    return table


def _sort_scopes(scopes: list[ScopeCapacity]) -> list[ScopeCapacity]:
    return sorted(scopes, key=lambda scope: -scope.count)


def _host_table(result: Capacity) -> Table:
    hosts = sorted(result.by_host, key=lambda each: -each.count)
    table: Table = [("host", "more fit", "limit")]
    table += [(each.node, _count_text(each), reason_words(each.reason)) for each in hosts]
    return table


def _flavor_lines(results: list[Capacity], *, by: str) -> list[str]:
    """Return one row per flavor: the count in total and per zone or aggregate, and the scarce resource."""
    scopes = [[] if by == "host" else each.zones if by == "zone" else each.aggregates for each in results]
    names = [scope.name or scope.uuid for scope in scopes[0]][:_ZONES_SHOWN] if scopes else []
    table: Table = [("flavor", "more fit", *names, "runs out first")]
    for each, parts in zip(results, scopes, strict=True):
        counts = [_count_text(part) for part in parts[: len(names)]]
        why = _shortage_text(each.exhausted) if each.exhausted else _refusal_text(each.unfit)
        table.append((_name(each), _count_text(each), *counts, why))
    counts_fit: list[Fit] = ["keep"] * (len(names) + 1)
    return align(table, fits=["text", *counts_fit, "prose"])


def _name(result: Capacity) -> str:
    """Return the name of the flavor with the amounts that were requested besides: ``gpu + 1 PGPU``."""
    return " + ".join([result.flavor, *(f"{amount:,} {name}" for name, amount in result.extra_resources.items())])


def _count_text(result: Capacity | ScopeCapacity | HostCapacity) -> str:
    return f"at least {result.count:,}" if result.is_at_least else f"{result.count:,}"


def _shortage_text(shortages: list[Shortage]) -> str:
    first, *others = shortages
    parts = [f"{first.subject} on {first.hosts:,} {'host' if first.hosts == 1 else 'hosts'}"]
    return ", ".join(parts + [f"{each.subject} on {each.hosts:,}" for each in others])


def _refusal_text(unfit: list[Shortage]) -> str:
    if not unfit:
        return "no hosts"
    first = unfit[0]
    return count_hosts(first.hosts, reason_words(first.reason, rule=first.rule), "host")
