"""Providers that share their inventory with other trees, via aggregates."""

from roost.engine.columns.state import State
from roost.engine.columns.types import Mask


class SharingProviders:
    """The sharing providers of a state. Invalid after a change of labels or trees.

    A tree is connected to a sharing provider if any provider of the tree is in an aggregate with it.
    """

    __slots__ = ("_by_aggregate", "_state", "rows")

    def __init__(self, state: State) -> None:
        self._state = state
        self.rows = frozenset(state.sharing_rows())
        self._by_aggregate: dict[int, list[int]] = {}
        for row in sorted(self.rows):
            for aggregate in state.membership.labels_of(row):
                self._by_aggregate.setdefault(aggregate, []).append(row)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def find_lenders(self, root: int) -> list[int]:
        """Find the sharing providers of other trees with a connection to this tree, in row order."""
        if not self._by_aggregate:
            return []
        state = self._state
        found: set[int] = set()
        for row in state.providers.rows_of_tree(root):
            for aggregate in state.membership.labels_of(row):
                found.update(self._by_aggregate.get(aggregate, ()))
        root_of = state.providers.root.data
        return sorted(row for row in found if root_of.item(row) != root)

    def borrower_mask(self, lenders: list[int]) -> Mask:
        """Return the providers in an aggregate with one of ``lenders``: bool, shape (providers,)."""
        membership = self._state.membership
        return membership.mask_of_any({aggregate for row in lenders for aggregate in membership.labels_of(row)})
