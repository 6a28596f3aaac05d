"""Building: what is to be built where, and what came of it."""

from typing import Literal

import msgspec

from roost.model.evidence.decision import Pick
from roost.model.request import Request


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that is to be built on a host."""

    uuid: str
    request: Request  # that asked for it, perhaps among others
    allocations: dict[str, dict[str, int]]  # what it holds there: provider uuid -> resource class -> amount


class BuildOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell's conductor is told: an instance, the host that is claimed for it, and where to go if that fails."""

    instance_uuid: str
    request: Request
    decision_uuid: str
    picks: list[Pick]  # the chosen host, then its alternates, best first; each with its allocation request


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One host that an instance was to be built on."""

    host: str
    node: str
    cell: str
    claim: Literal["claimed", "refused"]  # whether the instance came to hold its amounts there
    problem: str = ""  # why the claim was refused, or what went wrong in building; empty: it was built


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an instance, with the story of its attempts."""

    instance_uuid: str
    status: Literal["ACTIVE", "ERROR"]
    decision_uuid: str
    host: str = ""  # empty in ERROR, so for node and cell
    node: str = ""
    cell: str = ""
    fault: str = ""  # why it is in ERROR
    attempts: list[Attempt] = []
    unreleased: str = ""  # why it may still hold something although it is in ERROR; empty: it holds nothing
