"""Names and their numbers in the database."""

from collections.abc import Iterable, Iterator


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
