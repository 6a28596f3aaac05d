"""Names and their numbers."""

from collections.abc import Iterable, Iterator


class NameTable:
    """A two-way table of names and the numbers that the store gave them."""

    __slots__ = ("_id_of", "_name_of", "_names", "dropped", "highest")

    def __init__(self) -> None:
        self._id_of: dict[str, int] = {}
        self._name_of: dict[int, str] = {}
        self._names: tuple[str, ...] | None = ()
        self.dropped: dict[int, float] = {}  # number without a name -> when it lost it, where that is known
        self.highest = 0  # number ever seen, of dropped names too

    def put(self, symbol_id: int, name: str) -> None:
        """Let ``symbol_id`` stand for ``name``."""
        self._id_of[name] = symbol_id
        self._name_of[symbol_id] = name
        self._names = None
        self.dropped.pop(symbol_id, None)
        self.highest = max(self.highest, symbol_id)

    def drop(self, symbol_id: int, *, at_s: float = 0.0) -> None:
        """Let a number stand for nothing any more; 0: nobody knows since when."""
        name = self._name_of.pop(symbol_id, None)
        if name is not None:
            del self._id_of[name]
            self._names = None
        if at_s:
            self.dropped[symbol_id] = at_s
        self.highest = max(self.highest, symbol_id)

    def rename(self, symbol_id: int, name: str) -> None:
        """Let a number stand for another name."""
        self.drop(symbol_id)
        self.put(symbol_id, name)

    def id_of(self, name: str) -> int | None:
        """Return the number of a name, or nothing for a name never seen."""
        return self._id_of.get(name)

    def name_of(self, symbol_id: int) -> str:
        """Return the name of a number."""
        return self._name_of[symbol_id]

    @property
    def names(self) -> tuple[str, ...]:
        """All names in the order of their numbers; the same tuple until one comes, goes or changes."""
        if self._names is None:
            self._names = tuple(self._name_of[number] for number in sorted(self._name_of))
        return self._names

    def find_missing(self, names: Iterable[str]) -> list[str]:
        """Return the names that have no number yet, sorted."""
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
