"""Allocation candidates."""

from collections.abc import Mapping, Sequence

import msgspec

# Suffix of a resource group -> uuids of the providers that serve it.
Mappings = Mapping[str, Sequence[str]]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One way to satisfy a whole request: amounts on providers."""

    allocations: dict[str, dict[str, int]]  # provider uuid -> resource class -> amount
    mappings: dict[str, tuple[str, ...]] = {}  # group suffix -> provider uuids
