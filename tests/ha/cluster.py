"""A cluster of three database servers, as the faults and the measurements see it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from tests.ha.probe import Connection


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a fault.

    Args:
        outage_s: the longest time without a successful answer.
        is_silent: whether clients get no error.
    """

    outage_s: float
    is_silent: bool = False


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of a cluster.

    Args:
        name: on the command line and in the table.
        during: has the fault inside its context, and mends it at the end.
        hold_s: the duration of the fault, if it does not end by itself.
        target: the limits.
        problem: why this machine cannot have this fault; empty if it can.
    """

    name: str
    during: Callable[[], AbstractContextManager[None]]
    hold_s: float
    target: Target
    problem: str = ""


class Cluster(Protocol):
    """Three nodes on the loopback address."""

    name: str

    def start(self) -> None:
        """Start all nodes, and create an empty database for Roost and one for the probe."""

    def stop(self) -> None:
        """End all processes."""

    @property
    def url(self) -> str:
        """The URL of the database, with all nodes."""

    def connect_probe(self) -> Connection:
        """Connect to the database of the probe, on the node that takes writes."""

    def faults(self) -> tuple[Fault, ...]:
        """Return the faults, in the order of a run."""

    def problem(self) -> str:
        """Return the first deviation from full health; empty if the cluster is healthy."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the node that accepts writes."""
