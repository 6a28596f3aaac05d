"""Alternates: the best hosts of each chosen cell that were not chosen, to try when a build fails."""

from collections.abc import Container

from roost.engine.columns.state import State
from roost.model.evidence.decision import Pick
from roost.scheduler.pipeline.draw import Drawing
from roost.scheduler.pipeline.host_picks import pick_on, takes_on
from roost.scheduler.pipeline.shape import Shape
from roost.scheduler.pipeline.shape_result import Ranked


def alternates_of(
    state: State, shape: Shape, ranked: Ranked, *, rows: list[int], drawing: Drawing, seed: int, per_cell: int
) -> dict[str, list[Pick]]:
    """Return the alternates of each cell of a chosen host, the best first.

    For one instance they come from the ranking that chose it, before it takes its place. For several instances, rank
    the hosts again with all of them in place.

    Args:
        state: the columns.
        shape: of the request.
        ranked: the ranking, as far as it is known.
        rows: the chosen hosts.
        drawing: draws other hosts where settings ask for chance.
        seed: of the draw.
        per_cell: alternates in each cell, at most.
    """
    if not per_cell:
        return {}
    facts = state.hosts.facts
    cells: dict[str, list[Pick]] = {facts[row].cell: [] for row in rows}
    is_enough = not drawing.is_all and _fill(cells, state, shape, rows=ranked.rows, chosen=rows, per_cell=per_cell)
    if not is_enough and (drawing.is_all or ranked.left > len(ranked.rows)):
        cells = {cell: [] for cell in cells}
        _fill(cells, state, shape, rows=drawing.others(shape, seed=seed), chosen=set(rows), per_cell=per_cell)
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
        held = takes_on(state, shape, row)
        if held is None:
            continue
        picks.append(pick_on(state, shape, row, instance_uuid="", held=held))
        missing -= len(picks) == per_cell
        if not missing:
            return True
    return False
