"""Flavors and images that users stored under names."""

from typing import Literal

import msgspec

# Kind of the documents of flavors and images. Each change writes a new document; the highest version is in force.
NAMED = "named"
Noun = Literal["flavor", "image"]


class NamedVersion(msgspec.Struct, frozen=True, array_like=True):
    """One version of a named flavor or image."""

    noun: Noun
    name: str
    version: int
    body: bytes  # JSON of the flavor or image; empty: deleted
