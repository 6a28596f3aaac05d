"""Limits of the depth and the size of provider trees."""

from roost.engine.columns.trees import Providers
from roost.errors import BadRequest


def check_tree(
    providers: Providers, parent_uuid: str | None, *, moved_row: int | None, depth_max: int, providers_max: int
) -> None:
    """Refuse a parent for a provider and its subtree if the tree would become too deep or too large.

    Args:
        parent_uuid: uuid of the new parent; None: the provider becomes a root.
        moved_row: row of the provider; None: a new provider.
        depth_max: maximum number of providers from a root to a leaf, both included, >= 1.
        providers_max: maximum number of providers of a tree, >= 1.

    Raises:
        BadRequest: the tree would exceed a limit.
    """
    if parent_uuid is None:
        return
    parent_row = providers.row_of_uuid[parent_uuid]
    if moved_row is not None and providers.parent.each[moved_row] == parent_row:
        return  # The parent does not change: lower limits do not affect existing trees.
    moved = [] if moved_row is None else providers.subtree(moved_row)
    root = providers.root.each[parent_row]
    is_same_tree = moved_row is not None and providers.root.each[moved_row] == root
    count = len(providers.rows_of_tree(root)) + (0 if is_same_tree else max(len(moved), 1))
    if count > providers_max:
        raise BadRequest(
            f"The tree would have {count:,} providers, but at most {providers_max:,} are allowed "
            "(limit placement.tree_providers_max)."
        )
    depth = _depth(providers, parent_row) + _height(providers, moved, moved_row)
    if depth > depth_max:
        raise BadRequest(
            f"The tree would be {depth:,} providers deep, but at most {depth_max:,} are allowed "
            "(limit placement.tree_depth_max)."
        )


def _depth(providers: Providers, row: int) -> int:
    """Return the number of providers from the root to a row, both included."""
    depth = 0
    while row >= 0:
        row, depth = providers.parent.each[row], depth + 1
    return depth


def _height(providers: Providers, rows: list[int], top: int | None) -> int:
    """Return the number of providers from the top of a subtree to its deepest leaf, both included."""
    if top is None:
        return 1
    return max(_depth(providers, row) for row in rows) - _depth(providers, top) + 1
