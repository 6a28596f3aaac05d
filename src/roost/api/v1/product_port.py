"""The interface of the product for the API."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from roost.errors import RoostError
from roost.model.evidence.capacity import By, Capacity, FleetChange
from roost.model.evidence.comparison import Comparison
from roost.model.evidence.decision import Decision
from roost.model.evidence.explain import Explanation, Why
from roost.model.evidence.fleet_history import HistoryRow
from roost.model.evidence.replay_result import ReplayResult
from roost.model.evidence.summary import Summary
from roost.model.flavor import Flavor
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.model.settings.setting_rows import SettingsReport
from roost.model.stored_decision import DecisionQuery
from roost.ports import RemotePlacement
from roost.scheduler.comparison.policy_comparison import IsLate, RecordQuery, Scenario
from roost.scheduler.explain.capacity_count import HostCounts
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.plans.board import Fork
from roost.scheduler.select import Scheduler

# Reports the settings in force with their sources.
ReportSettings = Callable[[Settings], SettingsReport]


class Finding(Protocol):
    """A broken rule."""

    @property
    def check(self) -> str:
        """The name of the check."""

    @property
    def subject(self) -> str:
        """The object that breaks the rule."""

    @property
    def problem(self) -> str:
        """The problem, as a phrase after the subject."""


class OpenOperations(Protocol):
    """The open operations of one kind."""

    @property
    def count(self) -> int:
        """Their number."""

    @property
    def oldest_s(self) -> float:
        """The time of the oldest request, in seconds since the epoch."""


class Upkeep(Protocol):
    """The last audit or backup."""

    @property
    def at_s(self) -> float:
        """Its time, in seconds since the epoch."""

    @property
    def findings(self) -> int:
        """The number of findings of an audit."""

    @property
    def size_bytes(self) -> int:
        """The size of a backup."""


class RowCounts(Protocol):
    """The numbers of rows of a database."""

    @property
    def instances(self) -> Mapping[str, int]:
        """Instances by status."""

    @property
    def operations(self) -> Mapping[str, OpenOperations]:
        """Open operations by kind."""

    @property
    def failures(self) -> int:
        """Operations that failed recently."""

    @property
    def agents(self) -> Mapping[str, int]:
        """Agents by state."""

    @property
    def agents_reporting(self) -> int:
        """Agents with a recent contact."""

    @property
    def upkeep(self) -> Mapping[str, Upkeep]:
        """The last audit and backup, by name."""


class Product(Protocol):
    """The product over the columns of the serving thread, implemented by ``roost.product.Roost``."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    def rules(self) -> Rules:
        """The enabled filters and weighers."""

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler under the settings in force."""

    @property
    def remote(self) -> RemotePlacement | None:
        """The remote Placement; None: this server is the Placement itself."""

    def fork(self) -> Fork:
        """Return a private copy of the fleet."""

    def work(
        self, acts: Sequence[Request | NamedRequest | Departure], *, dry_run: bool = False
    ) -> list[Decision | None]:
        """Carry out acts in order."""

    def outcomes(
        self, acts: Sequence[Request | NamedRequest | Departure], *, dry_run: bool = False
    ) -> list[Decision | RoostError | None]:
        """Carry out acts in order; the result of a failed act is its error."""

    def decision(self, uuid: str) -> Decision:
        """Return a stored decision."""

    def request_of(self, decision: Decision) -> Request:
        """Return the request of a stored decision."""

    def find_decisions(self, query: DecisionQuery) -> list[tuple[int, Decision]]:
        """Return stored decisions with their numbers, newest first."""

    def summary(self, *, since_s: float = 0.0) -> Summary:
        """Summarise refusals by reason and by request."""

    def explain(self, request: Request) -> Explanation:
        """Explain a request on the current fleet, and change nothing."""

    def why(self, uuid: str) -> Why:
        """Explain a stored decision."""

    def replay(self, uuid: str, settings: Settings | None = None) -> ReplayResult:
        """Decide the request of a stored decision again."""

    def compare(self, sets: Mapping[str, Scenario], query: RecordQuery, *, is_late: IsLate) -> Comparison:
        """Decide recorded requests again under several sets of settings."""

    def capacity(
        self, request: Request, *, by: Collection[By], limit: int | None, change: FleetChange | None = None
    ) -> Capacity:
        """Count how many more instances fit, now or after a change of the fleet."""

    def host_counts(self, request: Request, *, limit: int | None) -> HostCounts:
        """Count how many more instances fit on each host."""

    def history(self, first: int, last: int) -> list[HistoryRow]:
        """Return the history of a span of minutes since the epoch."""

    def count_rows(self, *, contact_since_s: float, failed_since_s: float) -> RowCounts | None:
        """Count rows of the database; None: it is in memory."""

    def audit(self) -> Sequence[Finding]:
        """Check the tables of the database for consistency."""

    def flavors(self) -> list[Flavor]:
        """Return stored flavors and those of stored decisions."""

    def shapes(self, *, project_id: str | None = None) -> list[Request]:
        """Return the shapes of stored requests, of one project or of all."""

    def check_extra_specs(self, extra_specs: Mapping[str, str]) -> None:
        """Refuse invalid extra specs."""

    def override_settings(self, document: Mapping[str, Any]) -> Settings:
        """Return the settings in force with the overrides of a document."""
