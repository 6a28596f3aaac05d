"""Candidates from a remote Placement."""

from collections.abc import Mapping

import msgspec

Amounts = Mapping[str, Mapping[str, int]]  # provider uuid -> resource class -> amount


class RemoteHost(msgspec.Struct, frozen=True, kw_only=True):
    """A provider tree with a candidate."""

    allocations: dict[str, dict[str, int]]  # of the first candidate: provider uuid -> class -> amount
    used: dict[str, int]  # on the whole tree: class -> amount
    mappings: dict[str, tuple[str, ...]] = {}  # providers by request group; empty: not in the answer


class RemoteAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The provider trees with candidates, or the reason of a refusal."""

    hosts: dict[str, RemoteHost] = {}  # by the uuid of their root
    problem: str = ""  # reason of a refusal


class RemoteConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """The allocations of a consumer; empty: the consumer does not exist."""

    allocations: dict[str, dict[str, int]] = {}  # provider uuid -> resource class -> amount
    generation: int | None = None
