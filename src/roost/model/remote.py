"""What a remote Placement answers."""

from collections.abc import Mapping

import msgspec

Amounts = Mapping[str, Mapping[str, int]]  # provider uuid -> resource class -> amount


class RemoteHost(msgspec.Struct, frozen=True, kw_only=True):
    """A tree of providers that can hold what was asked."""

    allocations: dict[str, dict[str, int]]  # the first way to hold it there: provider uuid -> class -> amount
    used: dict[str, int]  # on the whole tree: class -> amount


class RemoteAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Which trees can hold what was asked."""

    hosts: dict[str, RemoteHost] = {}  # by the uuid of their root
    problem: str = ""  # why the question was refused
