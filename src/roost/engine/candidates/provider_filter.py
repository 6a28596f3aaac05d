"""Which providers have all that is asked, each by itself: passes over columns."""

import numpy as np

from roost.engine.candidates.anchors import permitted_by_labels
from roost.engine.candidates.query import Wanted
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask, Rows


def rows_that_have(state: State, wanted: Wanted) -> Rows:
    """Return the providers that alone serve a group: labels, amounts with their units, and tree.

    Args:
        wanted: aggregates count where the provider itself is in them; nothing asked means every provider.

    Returns:
        intp, ascending: the order in which they came to be.
    """
    mask: Mask = permitted_by_labels(state, wanted)
    for class_id, amount in wanted.resources:
        mask &= state.inventory(class_id).able(amount)
    if wanted.in_tree is not None:
        roots = state.providers.root
        mask &= roots.view == roots.each[wanted.in_tree]
    rows: Rows = np.flatnonzero(mask)
    return rows
