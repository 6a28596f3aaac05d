"""Stored flavors and images: the writes that store and delete them."""

import hashlib
from collections.abc import Callable

import msgspec

from roost.engine.columns.state import State
from roost.errors import NotFound, report_corruption
from roost.fleet.name_rules import check_name
from roost.model.flavor import Flavor
from roost.model.stored_names import NAMED, NamedVersion, Noun
from roost.model.writes import PutDocument

_encoder = msgspec.msgpack.Encoder()


def document_of(kind: str, key: bytes, body: bytes) -> PutDocument:
    """Return a document; its number and fingerprint are digests of its kind and key.

    Args:
        key: the identifying fields of the body, encoded.
    """
    fingerprint = hashlib.blake2b(kind.encode() + b"\0" + key, digest_size=16).digest()
    return PutDocument(int.from_bytes(fingerprint[:8], "big") >> 2 | 1, kind, fingerprint, body)


def bodies_of(state: State, noun: Noun) -> dict[str, bytes]:
    """Return the stored objects of a kind, sorted by name."""
    return {name: each.body for (kind, name), each in sorted(state.named.items()) if kind == noun and each.body}


def body_of(state: State, noun: Noun, name: str) -> bytes:
    """Return a stored object.

    Raises:
        NotFound: there is none.
    """
    stored = state.named.get((noun, name))
    if stored is None or not stored.body:
        raise NotFound(noun, name)
    return stored.body


def plan_document(state: State, noun: Noun, name: str, *, body: bytes) -> tuple[PutDocument, ...]:
    """Plan the storage of an object under a name; if it is unchanged, write nothing.

    Of two concurrent writes of the same version, one is refused, because name and version identify the document.

    Args:
        body: JSON; empty: delete the object.

    Raises:
        BadRequest: the name cannot be stored.
    """
    check_name(name, f"the {noun}", length_min=1)
    stored = state.named.get((noun, name))
    if stored is not None and stored.body == body:
        return ()
    version = 0 if stored is None else stored.version + 1
    key = f"{noun}\0{version}\0{name}".encode()
    return (document_of(NAMED, key, _encoder.encode(NamedVersion(noun, name, version, body))),)


def find_flavors(state: State, document: Callable[[int], bytes | None]) -> list[Flavor]:
    """Return all stored and all previously requested flavors, by name; a stored one hides others of its name.

    Args:
        state: the columns.
        document: returns the body of a stored document by its number.
    """
    stored = bodies_of(state, "flavor")
    numbers = [number for (kind, _), number in state.documents.items() if kind == "flavor"]
    with report_corruption("a flavor"):
        bodies = [body for number in numbers if (body := document(number)) is not None]
        requested = [msgspec.json.decode(body, type=Flavor) for body in bodies]
        found = [msgspec.json.decode(body, type=Flavor) for body in stored.values()]
    found += [flavor for flavor in requested if flavor.name not in stored]
    return sorted(found, key=lambda flavor: flavor.name)
