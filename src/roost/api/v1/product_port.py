"""What the API needs of the product behind it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from roost.errors import RoostError
from roost.model.evidence.capacity import Capacity
from roost.model.evidence.decision import Decision
from roost.model.evidence.explain import Why
from roost.model.evidence.replay_result import Replayed
from roost.model.flavor import Flavor
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.model.stored_decision import DecisionQuery
from roost.ports import RemotePlacement
from roost.scheduler.explain.capacity_count import By
from roost.scheduler.framework.plugin import Rules


class Product(Protocol):
    """The whole product, over the columns that the serving thread owns: ``roost.product.Roost`` says what each does."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    def rules(self) -> Rules:
        """The enabled filters and weighers."""

    @property
    def remote(self) -> RemotePlacement | None:
        """What keeps the amounts; None: the columns."""

    def work(
        self, acts: Sequence[Request | NamedRequest | Departure], *, dry_run: bool = False
    ) -> list[Decision | None]:
        """Do acts in order."""

    def outcomes(
        self, acts: Sequence[Request | NamedRequest | Departure], *, dry_run: bool = False
    ) -> list[Decision | RoostError | None]:
        """Do the same, each error in the place of its act."""

    def decision(self, uuid: str) -> Decision:
        """Return a stored decision."""

    def request_of(self, decision: Decision) -> Request:
        """Return what a stored decision was asked."""

    def find_decisions(self, query: DecisionQuery) -> list[tuple[int, Decision]]:
        """Return stored decisions with their numbers, newest first."""

    def why(self, uuid: str) -> Why:
        """Return a stored decision, explained."""

    def replay(self, uuid: str, settings: Settings | None = None) -> Replayed:
        """Make a stored decision again."""

    def capacity(self, request: Request, *, by: Collection[By], limit: int | None) -> Capacity:
        """Say how many more fit."""

    def flavors(self) -> list[Flavor]:
        """Return the flavors that are known."""

    def check_extra_specs(self, extra_specs: Mapping[str, str]) -> None:
        """Refuse extra specs that no flavor may have."""

    def override_settings(self, document: Mapping[str, Any]) -> Settings:
        """Return settings that are like those in force but for what a document says."""
