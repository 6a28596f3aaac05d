"""The rows of each name: most names have a single row, and need no list for it."""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence


class RowsByName(Mapping[str, Sequence[int]]):
    """A read-only view of names and their rows, in row order. ``add``, ``fill`` and ``remove`` change it."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[str, int | list[int]] = {}

    def __getitem__(self, name: str) -> Sequence[int]:
        found = self._rows[name]
        return (found,) if isinstance(found, int) else found

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, name: str, row: int) -> None:
        """Add a row to a name."""
        found = self._rows.setdefault(name, row)
        if isinstance(found, list):
            insort(found, row)
        elif found != row:
            self._rows[name] = [found, row] if found < row else [row, found]

    def fill(self, names: Iterable[str], rows: Iterable[int]) -> None:
        """Add new rows, each with its name."""
        known = self._rows
        for name, row in zip(names, rows, strict=True):
            if known.setdefault(name, row) is not row:
                self.add(name, row)

    def remove(self, name: str, row: int) -> None:
        """Remove a row from a name."""
        found = self._rows[name]
        if isinstance(found, int):
            assert found == row, "the row has another name"
            del self._rows[name]
            return
        found.remove(row)
        if len(found) == 1:
            self._rows[name] = found[0]

    def fork(self) -> "RowsByName":
        """Return an independent copy."""
        copy = RowsByName()
        copy._rows = {name: list(rows) if isinstance(rows, list) else rows for name, rows in self._rows.items()}  # noqa: SLF001
        return copy
