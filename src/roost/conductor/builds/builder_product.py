"""The interfaces for the super conductor and the cell conductors."""

from collections.abc import Sequence
from typing import Protocol

from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.model.work.builds import BuildOrder, Outcome
from roost.ports import Commits, RemotePlacement


class BuilderProduct(Protocol):
    """The scheduler and the claims; see ``roost.product.Roost``."""

    @property
    def settings(self) -> Settings:
        """The current settings."""

    @property
    def remote(self) -> RemotePlacement | None:
        """The remote Placement; None: the columns hold all claims."""

    @property
    def placement(self) -> Commits:
        """The columns and their commits."""

    def work(self, acts: Sequence[Request | NamedRequest | Departure]) -> list[Decision | None]:
        """Execute acts in order."""

    def decision(self, uuid: str) -> Decision:
        """Return a stored decision."""


class Cell(Protocol):
    """The conductor of a cell."""

    def build(self, order: BuildOrder) -> Outcome:
        """Build an instance on its claimed host, or on an alternate."""
