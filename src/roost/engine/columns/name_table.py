"""Names with their numbers in the database, and names with their rows."""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence


class NameTable:
    """A two-way table of names and their numbers from the store."""

    __slots__ = ("_id_of", "_name_of", "_names", "dropped", "highest")

    def __init__(self) -> None:
        self._id_of: dict[str, int] = {}
        self._name_of: dict[int, str] = {}
        self._names: tuple[str, ...] | None = ()
        self.dropped: dict[int, float] = {}  # number of a dropped name -> time of the drop, if known
        self.highest = 0  # highest number ever seen, including dropped names

    def put(self, symbol_id: int, name: str) -> None:
        """Assign a number to a name."""
        self._id_of[name] = symbol_id
        self._name_of[symbol_id] = name
        self._names = None
        self.dropped.pop(symbol_id, None)
        self.highest = max(self.highest, symbol_id)

    def drop(self, symbol_id: int, *, at_s: float = 0.0) -> None:
        """Drop the name of a number; ``at_s`` 0: at an unknown time."""
        name = self._name_of.pop(symbol_id, None)
        if name is not None:
            del self._id_of[name]
            self._names = None
        if at_s:
            self.dropped[symbol_id] = at_s
        self.highest = max(self.highest, symbol_id)

    def rename(self, symbol_id: int, name: str) -> None:
        """Change the name of a number."""
        self.drop(symbol_id)
        self.put(symbol_id, name)

    def id_of(self, name: str) -> int | None:
        """Return the number of a name; None for an unknown name."""
        return self._id_of.get(name)

    def name_of(self, symbol_id: int) -> str:
        """Return the name of a number."""
        return self._name_of[symbol_id]

    @property
    def names(self) -> tuple[str, ...]:
        """All names in the order of their numbers; the same tuple until a name changes."""
        if self._names is None:
            self._names = tuple(self._name_of[number] for number in sorted(self._name_of))
        return self._names

    def find_missing(self, names: Iterable[str]) -> list[str]:
        """Find the names without a number, sorted."""
        return sorted({name for name in names if name not in self._id_of})

    def __contains__(self, name: str) -> bool:
        return name in self._id_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._id_of)

    def __len__(self) -> int:
        return len(self._id_of)

    def fork(self) -> "NameTable":
        """Return an independent copy."""
        copy = NameTable()
        copy._id_of = dict(self._id_of)
        copy._name_of = dict(self._name_of)
        copy._names = self._names
        copy.dropped = dict(self.dropped)
        copy.highest = self.highest
        return copy


class RowsByName(Mapping[str, Sequence[int]]):
    """The rows of each name, in row order. Most names have a single row, and need no list for it."""

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
        copy._rows = {name: list(rows) if isinstance(rows, list) else rows for name, rows in self._rows.items()}
        return copy
