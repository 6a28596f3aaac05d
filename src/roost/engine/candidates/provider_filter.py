"""Filters of providers by resources, labels and tree, in passes over columns."""

import numpy as np

from roost.engine.candidates.anchors import label_mask
from roost.engine.candidates.query import GroupNeeds
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask, Rows


def find_providers(state: State, needs: GroupNeeds) -> Rows:
    """Find the providers that can serve a group alone: labels, amounts with their units, and tree.

    Args:
        needs: only a provider's own aggregates count, not those of its root; empty needs match every provider.

    Returns:
        intp, ascending: in order of creation.
    """
    mask: Mask = label_mask(state, needs)
    for class_id, amount in needs.resources:
        mask &= state.inventory(class_id).fit_mask(amount)
    if needs.in_tree is not None:
        roots = state.providers.root
        mask &= roots.view == roots.each[needs.in_tree]
    rows: Rows = np.flatnonzero(mask)
    return rows
