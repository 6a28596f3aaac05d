"""Names and their numbers."""

from collections.abc import Iterable, Iterator


class Symbols:
    """A two-way table of names and the numbers that the store gave them."""

    __slots__ = ("_id_of", "_name_of")

    def __init__(self) -> None:
        self._id_of: dict[str, int] = {}
        self._name_of: dict[int, str] = {}

    def put(self, symbol_id: int, name: str) -> None:
        """Let ``symbol_id`` stand for ``name``."""
        self._id_of[name] = symbol_id
        self._name_of[symbol_id] = name

    def id_of(self, name: str) -> int | None:
        """Return the number of a name, or nothing for a name never seen."""
        return self._id_of.get(name)

    def name_of(self, symbol_id: int) -> str:
        """Return the name of a number."""
        return self._name_of[symbol_id]

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the names that have no number yet, sorted."""
        return sorted({name for name in names if name not in self._id_of})

    def __contains__(self, name: str) -> bool:
        return name in self._id_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._id_of)

    def __len__(self) -> int:
        return len(self._id_of)

    def fork(self) -> "Symbols":
        """Return an independent copy."""
        copy = Symbols()
        copy._id_of = dict(self._id_of)
        copy._name_of = dict(self._name_of)
        return copy
