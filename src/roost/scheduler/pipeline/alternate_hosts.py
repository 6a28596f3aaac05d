"""Alternates: the best other hosts in the cells of the chosen hosts, to try when a build fails."""

from collections.abc import Container

from roost.engine.columns.state import State
from roost.model.evidence.decision import Pick
from roost.scheduler.pipeline.draw import Draw
from roost.scheduler.pipeline.host_picks import build_pick, find_allocation
from roost.scheduler.shape.host_ranking import Ranking
from roost.scheduler.shape.shape import Shape


def find_alternates(
    state: State, shape: Shape, ranking: Ranking, *, rows: list[int], draw: Draw, seed: int, per_cell: int
) -> dict[str, list[Pick]]:
    """Return the alternates in the cell of each chosen host, best first.

    For one instance, pass the ranking from which its host was drawn. For several instances, pass a new ranking after
    all of them have their hosts.

    Args:
        state: the columns.
        shape: the pipeline of the request.
        ranking: the best hosts, in order.
        rows: the chosen hosts.
        draw: orders all further hosts; with the chance driver, at random.
        seed: seed of the random order.
        per_cell: upper bound on alternates in each cell.
    """
    if not per_cell:
        return {}
    facts = state.hosts.facts
    cells: dict[str, list[Pick]] = {facts[row].cell: [] for row in rows}
    is_enough = not draw.is_chance_only and _fill(
        cells, state, shape, rows=ranking.rows, chosen=rows, per_cell=per_cell
    )
    if not is_enough and (draw.is_chance_only or ranking.left > len(ranking.rows)):
        cells = {cell: [] for cell in cells}
        _fill(cells, state, shape, rows=draw.other_hosts(shape, seed=seed), chosen=set(rows), per_cell=per_cell)
    return {cell: picks for cell, picks in cells.items() if picks}


def _fill(
    cells: dict[str, list[Pick]], state: State, shape: Shape, *, rows: list[int], chosen: Container[int], per_cell: int
) -> bool:
    """Add the best unchosen hosts to their cells; return whether every cell is full."""
    missing, facts = len(cells), state.hosts.facts
    for row in rows:
        picks = cells.get(facts[row].cell)
        if picks is None or len(picks) == per_cell or row in chosen:
            continue
        allocation = find_allocation(state, shape, row)
        if allocation is None:
            continue
        picks.append(build_pick(state, shape, row, instance_uuid="", allocation=allocation))
        missing -= len(picks) == per_cell
        if not missing:
            return True
    return False
