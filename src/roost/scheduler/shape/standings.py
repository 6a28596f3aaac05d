"""The standing of each host for one instance of a shape: the check that rejects it, or its score."""

import numpy as np

from roost.engine.columns.state import State
from roost.model.evidence.replay_result import HostStanding
from roost.scheduler.shape.shape import Shape


def standings(shape: Shape, state: State) -> dict[str, HostStanding]:
    """Return the standing of every live host for one instance of a shape, by node."""
    rules = [rule for rule, _ in shape.evidence.checks.rules]
    refusals = shape.verdicts.refusals()
    nodes = state.hosts.nodes
    by_node = {
        nodes[row]: HostStanding(refused_by=rules[refusals[row]])
        for row in np.flatnonzero(state.hosts.alive.view & (refusals < len(rules))).tolist()
    }
    ranking = shape.rank_all()
    for row, total in zip(ranking.rows, ranking.totals, strict=True):
        by_node[nodes[row]] = HostStanding(total=total)
    return by_node
