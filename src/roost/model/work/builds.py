"""Builds: orders, attempts and outcomes."""

from typing import Literal

import msgspec

from roost.model.evidence.decision import Pick
from roost.model.request import Request


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance to build on a host."""

    uuid: str
    request: Request  # for this instance, and possibly others
    allocations: dict[str, dict[str, int]]  # on the host: provider uuid -> resource class -> amount


class BuildOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order to a cell's conductor: an instance, its claimed host, and the alternates."""

    instance_uuid: str
    request: Request
    decision_uuid: str
    picks: list[Pick]  # the chosen host, then its alternates, best first; each with its allocations


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to build an instance on a host."""

    host: str
    node: str
    cell: str
    claim: Literal["claimed", "refused"]  # result of the claim on this host
    problem: str = ""  # reason of the refused claim or of the failed build; empty: success


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a build, with its attempts."""

    instance_uuid: str
    status: Literal["ACTIVE", "ERROR"]
    decision_uuid: str
    host: str = ""  # empty in ERROR, like node and cell
    node: str = ""
    cell: str = ""
    fault: str = ""  # reason of ERROR
    attempts: list[Attempt] = []
    unreleased: str = ""  # reason why an instance in ERROR may still hold allocations; empty: it holds none
