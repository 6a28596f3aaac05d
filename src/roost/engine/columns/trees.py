"""Providers and their trees, in columns."""

from bisect import insort
from collections.abc import Sequence

import numpy as np

from roost.engine.columns.column import Column


class Providers:
    """All providers ever seen by this process, one row each, in order of arrival.

    Rows of deleted providers stay, with ``alive`` False; row numbers are never reused.
    """

    __slots__ = (
        "alive",
        "children",
        "generation",
        "ids",
        "names",
        "parent",
        "root",
        "row_of_id",
        "row_of_name",
        "row_of_uuid",
        "shape_version",
        "touched_s",
        "tree",
        "uuids",
        "versions",
    )

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.uuids: list[str] = []
        self.names: list[str] = []
        self.versions: list[int] = []
        self.row_of_id: dict[int, int] = {}
        self.row_of_uuid: dict[str, int] = {}
        self.row_of_name: dict[str, int] = {}
        self.generation = Column(np.int64)
        # Time of the last change of the provider, its inventory or its labels: seconds since the epoch.
        self.touched_s = Column(np.float64)
        self.parent = Column(np.int64, fill=-1)  # row, -1: a root
        self.root = Column(np.int64, fill=-1)  # row; for a root, its own row
        self.alive = Column(np.bool_, fill=False)
        # Both fields keep their lists in row order. So columns loaded from the store have the same lists as columns
        # after many moves.
        self.children: dict[int, list[int]] = {}  # row -> rows, without empty lists
        self.tree: dict[int, list[int]] = {}  # root row -> all rows of its tree, for trees of several providers
        self.shape_version = 0  # rises when the structure of a tree changes

    def __len__(self) -> int:
        return len(self.ids)

    def rows_of_tree(self, root: int) -> list[int]:
        """Return the rows of a root's whole tree, in row order."""
        return self.tree.get(root) or [root]

    def put(self, provider_id: int, *, uuid: str, name: str, parent_row: int, version: int) -> int:
        """Add a provider, or rename or re-parent it; return its row."""
        self.shape_version += 1
        row = self.row_of_id.get(provider_id)
        if row is None:
            row = len(self.ids)
            self.ids.append(provider_id)
            self.uuids.append(uuid)
            self.names.append(name)
            self.versions.append(version)
            self.row_of_id[provider_id] = row
            self.row_of_uuid[uuid] = row
            self.row_of_name[name] = row
            for column in self._columns():
                column.grow(row + 1)
            self.alive.each[row] = True
            self.root.each[row] = row
            if parent_row >= 0:
                self._join(row, parent_row)
            return row
        if version < self.versions[row]:
            return row
        self.versions[row] = version
        _forget(self.row_of_name, self.names[row], row)
        self.names[row] = name
        self.row_of_name[name] = row
        if parent_row != self.parent.view[row]:
            self._move(row, parent_row)
        return row

    def fill(
        self,
        ids: Sequence[int],
        *,
        uuids: Sequence[str],
        names: Sequence[str],
        parent_ids: Sequence[int | None],
        versions: Sequence[int],
    ) -> None:
        """Add new providers; the parent of each one is older. The result equals that of one ``put`` for each."""
        first = len(self.ids)
        rows = list(range(first, first + len(ids)))  # All dictionaries share these objects.
        self.ids.extend(ids)
        self.uuids.extend(uuids)
        self.names.extend(names)
        self.versions.extend(versions)
        self.row_of_id.update(zip(ids, rows, strict=True))
        self.row_of_uuid.update(zip(uuids, rows, strict=True))
        self.row_of_name.update(zip(names, rows, strict=True))
        for column in self._columns():
            column.grow(len(self.ids))
        self.alive.fill(first, True)  # a value of the column
        self.root.fill(first, rows)
        for row, parent_id in zip(rows, parent_ids, strict=True):
            if parent_id is not None:
                self._join(row, self.row_of_id[parent_id])
        self.shape_version += len(ids)

    def trim(self) -> None:
        """Release the memory for further rows."""
        for column in self._columns():
            column.trim()

    def _columns(self) -> tuple[Column, ...]:
        return self.generation, self.touched_s, self.parent, self.root, self.alive

    def _join(self, row: int, parent_row: int) -> None:
        root = int(self.root.view[parent_row])
        self.parent.each[row] = parent_row
        self.root.each[row] = root
        self.children.setdefault(parent_row, []).append(row)
        self.tree.setdefault(root, [root]).append(row)  # The newest row is the highest, so the list stays sorted.

    def _leave(self, row: int, parent_row: int) -> None:
        siblings = self.children[parent_row]
        siblings.remove(row)
        if not siblings:
            del self.children[parent_row]

    def _move(self, row: int, parent_row: int) -> None:
        old_root, old_parent = int(self.root.view[row]), int(self.parent.view[row])
        if old_parent >= 0:
            self._leave(row, old_parent)
        self.parent.each[row] = parent_row
        if parent_row >= 0:
            insort(self.children.setdefault(parent_row, []), row)
        new_root = int(self.root.view[parent_row]) if parent_row >= 0 else row
        for moved in self.subtree(row):
            self.root.each[moved] = new_root
        for root in {old_root, new_root}:
            rows = sorted(self.subtree(root))
            if len(rows) > 1:
                self.tree[root] = rows
            else:
                self.tree.pop(root, None)
        if row != new_root:
            self.tree.pop(row, None)

    def subtree(self, row: int) -> list[int]:
        """Return a provider and its descendants, parents before children."""
        rows = [row]
        for above in rows:
            rows.extend(self.children.get(above, ()))
        return rows

    def drop(self, provider_id: int) -> int:
        """Remove a provider from its tree; return its row."""
        self.shape_version += 1
        row = self.row_of_id.pop(provider_id)
        self.alive.each[row] = False
        _forget(self.row_of_uuid, self.uuids[row], row)
        _forget(self.row_of_name, self.names[row], row)
        parent, root = int(self.parent.view[row]), int(self.root.view[row])
        if parent >= 0:
            self._leave(row, parent)
            rows = self.tree[root]
            rows.remove(row)
            if len(rows) == 1:
                del self.tree[root]
        return row

    def fork(self) -> "Providers":
        """Return an independent copy."""
        copy = Providers()
        for name in ("ids", "uuids", "names", "versions"):
            setattr(copy, name, list(getattr(self, name)))
        for name in ("row_of_id", "row_of_uuid", "row_of_name"):
            setattr(copy, name, dict(getattr(self, name)))
        for name in ("generation", "touched_s", "parent", "root", "alive"):
            setattr(copy, name, getattr(self, name).fork())
        copy.children = {row: list(rows) for row, rows in self.children.items()}
        copy.tree = {row: list(rows) for row, rows in self.tree.items()}
        copy.shape_version = self.shape_version
        return copy


def _forget(row_of: dict[str, int], name: str, row: int) -> None:
    # Changes may arrive out of order: the name may already belong to another provider.
    if row_of.get(name) == row:
        del row_of[name]
