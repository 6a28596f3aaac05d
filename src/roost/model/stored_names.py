"""Flavors and images under names: what somebody stored, to be asked for later."""

from typing import Literal

import msgspec

# Of the documents that hold them. One more is written with each change, and the highest version is what holds.
NAMED = "named"
Noun = Literal["flavor", "image"]


class Named(msgspec.Struct, frozen=True, array_like=True):
    """A flavor or an image under a name, as of one version."""

    noun: Noun
    name: str
    version: int
    body: bytes  # JSON of the noun; empty: it was deleted
