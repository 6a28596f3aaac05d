"""How each host stands for one instance of a shape: the check that refuses it, or its score."""

import numpy as np

from roost.engine.columns.state import State
from roost.model.evidence.replay_result import HostStanding
from roost.scheduler.pipeline.shape import Shape


def standings(shape: Shape, state: State) -> dict[str, HostStanding]:
    """Say of every living host, by its node, how it stands for one instance of a shape."""
    rules = [rule for rule, _ in shape.checks.rules]
    refusals = shape.refusals()
    nodes = state.hosts.nodes
    by_node = {
        nodes[row]: HostStanding(refused_by=rules[refusals[row]])
        for row in np.flatnonzero(state.hosts.alive.view & (refusals < len(rules))).tolist()
    }
    ranking = shape.rank_all()
    for row, total in zip(ranking.rows, ranking.totals, strict=True):
        by_node[nodes[row]] = HostStanding(total=total)
    return by_node
