"""Which providers have all that is asked, each by itself: passes over columns."""

import numpy as np

from roost.engine.candidates.anchors import label_mask
from roost.engine.candidates.query import GroupNeeds
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask, Rows


def find_providers(state: State, needs: GroupNeeds) -> Rows:
    """Return the providers that alone serve a group: labels, amounts with their units, and tree.

    Args:
        needs: aggregates count where the provider itself is in them; nothing asked means every provider.

    Returns:
        intp, ascending: the order in which they came to be.
    """
    mask: Mask = label_mask(state, needs)
    for class_id, amount in needs.resources:
        mask &= state.inventory(class_id).fit_mask(amount)
    if needs.in_tree is not None:
        roots = state.providers.root
        mask &= roots.view == roots.each[needs.in_tree]
    rows: Rows = np.flatnonzero(mask)
    return rows
