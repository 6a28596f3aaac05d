"""Adds the providers of hosts to the hosts' aggregates while all services but the database are stopped."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Literal, NamedTuple

from roost.compute.report.report_client import ReportClient
from roost.direct.offline_report import open_report
from roost.errors import Conflict, NotFound, Unavailable
from roost.fleet.aggregate_writes import members
from roost.machine import SystemClock
from roost.placement.current import Current
from roost.store.backends import open_reader

Verdict = Literal["done", "unavailable", "refused", "no provider"]


class SyncResult(NamedTuple):
    """The result of a synchronization."""

    verdict: Verdict
    added: int  # pairs of host and aggregate
    problem: str = ""


def sync_aggregates(url: str, *, echo: Callable[[str], None]) -> SyncResult:
    """Add the provider of each host to the host's aggregates, and remove none.

    Args:
        url: URL of the database.
        echo: called with one sentence per host.

    Raises:
        StoreBusy, Unavailable: see ``open_report``.
    """
    nodes_by_aggregate = read_hosts(url)
    with open_report(url) as report:
        return add_hosts(nodes_by_aggregate, report, echo=echo)


def read_hosts(url: str) -> dict[str, list[str]]:
    """Read the names of the nodes in each named aggregate, by its uuid."""
    with closing(open_reader(url)) as store:
        state = Current(store, clock=SystemClock()).state
        hosts = state.hosts
        nodes_by_aggregate: dict[str, list[str]] = {}
        for number in [number for number, name in state.aggregate_names.items() if name]:
            rows = [hosts.row_of_root[row] for row in members(state, number) if row in hosts.row_of_root]
            nodes_by_aggregate[state.aggregates.name_of(number)] = [
                state.providers.names[hosts.provider_row.each[row]] for row in rows
            ]
        return nodes_by_aggregate


def add_hosts(
    nodes_by_aggregate: Mapping[str, Sequence[str]], report: ReportClient, *, echo: Callable[[str], None]
) -> SyncResult:
    """Add the providers of nodes to aggregates.

    Args:
        nodes_by_aggregate: names of nodes by the uuid of their aggregate.
        report: client of the nodes' Placement.
        echo: called with one sentence per node.
    """
    count = 0
    for uuid, nodes in nodes_by_aggregate.items():
        for node in nodes:
            try:
                report.aggregate_add_host(uuid, node)
            except NotFound as error:
                return SyncResult("no provider", count, str(error))
            except Conflict as error:
                return SyncResult("refused", count, str(error))
            except Unavailable as error:
                return SyncResult("unavailable", count, str(error))
            echo(f"the provider of node {node} is in aggregate {uuid}")
            count += 1
    return SyncResult("done", count)
