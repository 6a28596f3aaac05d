"""Lookup of the parts of a fleet document by uuid or name."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from roost.errors import BadFile
from roost.model.names import uuid_form

_NAMESPACE = uuid.UUID("0c6f4a0e-7d0b-5a43-9b53-0b6b0a3c8f5e")
_Part = TypeVar("_Part")


def uuid_for(*names: str) -> uuid.UUID:
    """Return a uuid for a part without one, determined by its names."""
    return uuid.uuid5(_NAMESPACE, "\x1f".join(names))


class PartIndex(Generic[_Part]):
    """Parts of one kind by their uuids and names.

    Args:
        kind: noun for errors.
        file: name of the document in errors.
    """

    def __init__(self, kind: str, *, file: str) -> None:
        self._kind = kind
        self._file = file
        self._by_uuid: dict[str, _Part] = {}
        self._by_name: list[dict[str, list[_Part]]] = []

    def add(self, part: _Part, uuid_text: str, names: Sequence[str], *, at: str) -> None:
        """Add a part under its uuid and its names, in order of precedence.

        Raises:
            BadFile: another part has the uuid.
        """
        if uuid_text in self._by_uuid:
            raise BadFile(self._file, f"{at}: two {self._kind}s have the uuid {uuid_text}")
        self._by_uuid[uuid_text] = part
        for rank, name in enumerate(names):
            if rank == len(self._by_name):
                self._by_name.append({})
            if name:
                self._by_name[rank].setdefault(name, []).append(part)

    def find(self, name: str, *, at: str, file: str | None = None) -> _Part:
        """Find a part by its name or uuid.

        Args:
            name: the name or uuid, as in a document.
            at: path of the name in its document, for errors.
            file: name of this document in errors; None: the document of the parts.

        Raises:
            BadFile: no part matches, or more than one.
        """
        file = self._file if file is None else file
        part = self._by_uuid.get(uuid_form(name))
        if part is not None:
            return part
        for by_name in self._by_name:
            parts = by_name.get(name, ())
            if len(parts) == 1:
                return parts[0]
            if parts:
                problem = f"{len(parts)} {self._kind}s are called {name[:70]!r}; use a uuid"
                raise BadFile(file, f"{at}: {problem}")
        raise BadFile(file, f"{at}: there is no {self._kind} {name[:70]!r}")

    def name_of(self, uuid_text: str, names: Iterable[str]) -> str:
        """Return the first unique name of a part, or its uuid."""
        part = self._by_uuid[uuid_text]
        for name in names:
            if name and uuid_form(name) not in self._by_uuid:
                ranks = [by_name[name] for by_name in self._by_name if name in by_name]
                if ranks and len(ranks[0]) == 1 and ranks[0][0] is part:
                    return name
        return uuid_text
