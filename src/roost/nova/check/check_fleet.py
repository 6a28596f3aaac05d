"""Checks cells and hosts: how many are up, down, disabled, or not mapped."""

from collections.abc import Iterator, Sequence
from contextlib import closing

from roost.errors import BadSettings, Unavailable
from roost.model.host import is_up
from roost.model.settings.nova_settings import Nova
from roost.nova.check.check_databases import database_finding
from roost.nova.check.check_finding import Finding, count_of, shorten_names
from roost.nova.database.database_options import DatabaseOptions
from roost.nova.database.fleet_reader import FleetReader
from roost.nova.database.nova_fleet import Cell, ComputeNode, FleetChanges
from roost.ports import Clock


def read_fleet(options: DatabaseOptions, clock: Clock) -> FleetChanges:
    """Read all cells, as the service does at its start.

    Raises:
        Unavailable: the API database cannot be read.
        BadSettings: its URL is invalid, or its driver is not installed.
    """
    with closing(FleetReader(options, clock)) as reader:
        return reader.read()


def check_fleet(fleet: FleetChanges, options: DatabaseOptions, settings: Nova, *, clock: Clock) -> Iterator[Finding]:
    """Yield findings on each cell, and on all hosts together."""
    now_s, up = clock.now_s(), 0
    for cell in fleet.cells:
        if cell.uuid in fleet.silent_cells:
            yield database_finding("error", fleet.silent_cells[cell.uuid], "until it answers, its hosts are not chosen")
        elif cell.is_disabled:
            yield database_finding("ok", f"cell {_name(cell)} is disabled: its hosts are not chosen")
        else:
            nodes = [each for each in fleet.computes if each.cell == cell.uuid]
            up += sum(_is_up(each, now_s, options) for each in nodes)
            yield from _check_cell(cell, nodes, now_s=now_s, options=options)
    if fleet.computes and not up:
        advice = "compare the clocks of the hosts with this machine, and check service_down_time and report_interval"
        yield database_finding("error", "no compute service is up: no host can be chosen", advice)
    yield from _check_mapped(fleet.computes, settings)
    silent = [each for each in fleet.computes if each.is_mapped and not each.is_ready]
    if silent:
        found = f"{count_of(silent, 'compute node')} without a service or a report: {_hosts(silent)}"
        yield database_finding("warning", found, "start nova-compute there; until then, these hosts are not chosen")


def _check_cell(
    cell: Cell, nodes: Sequence[ComputeNode], *, now_s: float, options: DatabaseOptions
) -> Iterator[Finding]:
    down = [each for each in nodes if not _is_up(each, now_s, options)]
    disabled = sum(each.facts.is_disabled for each in nodes)
    found = (
        f"cell {_name(cell)}: {count_of(nodes, 'compute node')}: "
        f"{len(nodes) - len(down):,} up, {len(down):,} down, {disabled:,} disabled"
    )
    if not nodes:
        yield database_finding("warning", f"cell {_name(cell)} has no compute node", "start nova-compute on its hosts")
        return
    yield database_finding("ok", found)
    if down:
        found = f"{count_of(down, 'compute node')} down in cell {_name(cell)}: {_hosts(down)}"
        yield database_finding("warning", found, "start nova-compute there; until then, these hosts are not chosen")


def _check_mapped(nodes: Sequence[ComputeNode], settings: Nova) -> Iterator[Finding]:
    unmapped = [each for each in nodes if not each.is_mapped]
    if not unmapped:
        return
    found = f"{count_of(unmapped, 'compute node')} not mapped to a cell: {_hosts(unmapped)}"
    if settings.discovers_hosts:
        yield database_finding("ok", f"{found}; Roost maps them, as nova.discovers_hosts says")
    else:
        yield database_finding("warning", found, "run nova-manage cell_v2 discover_hosts, or set nova.discovers_hosts")


def unreadable_fleet(error: Unavailable | BadSettings) -> Finding:
    """Return the finding about databases that cannot be read."""
    return database_finding("error", f"the hosts cannot be read: {error}")


def _is_up(node: ComputeNode, now_s: float, options: DatabaseOptions) -> bool:
    return is_up(node.facts, now_s=now_s, down_time_s=options.service_down_time_s)


def _name(cell: Cell) -> str:
    return cell.name or cell.uuid


def _hosts(nodes: Sequence[ComputeNode]) -> str:
    return shorten_names(each.host or each.node for each in nodes)
