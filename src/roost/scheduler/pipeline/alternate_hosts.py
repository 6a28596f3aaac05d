"""Alternates: the best hosts of each chosen cell that were not chosen, to try when a build fails."""

from collections.abc import Container

from roost.engine.columns.state import State
from roost.model.evidence.decision import Pick
from roost.scheduler.pipeline.draw import Draw
from roost.scheduler.pipeline.host_picks import build_pick, find_allocation
from roost.scheduler.pipeline.shape import Shape
from roost.scheduler.pipeline.shape_result import Ranking


def find_alternates(
    state: State, shape: Shape, ranking: Ranking, *, rows: list[int], draw: Draw, seed: int, per_cell: int
) -> dict[str, list[Pick]]:
    """Return the alternates of each cell of a chosen host, the best first.

    For one instance they come from the ranking that chose it, before it takes its place. For several instances, rank
    the hosts again with all of them in place.

    Args:
        state: the columns.
        shape: of the request.
        ranking: the ranking, as far as it is known.
        rows: the chosen hosts.
        draw: draws other hosts where settings ask for chance.
        seed: of the draw.
        per_cell: alternates in each cell, at most.
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
    """Add the best hosts that were not chosen to their cells; return whether every cell is full."""
    missing, facts = len(cells), state.hosts.facts
    for row in rows:
        picks = cells.get(facts[row].cell)
        if picks is None or len(picks) == per_cell or row in chosen:
            continue
        allocation = find_allocation(state, shape, row)
        if allocation is None:
            continue
        picks.append(build_pick(state, shape, row, instance_uuid="", held=allocation))
        missing -= len(picks) == per_cell
        if not missing:
            return True
    return False
