"""The plug-in contract: the methods of filters and weighers, and their optional extensions."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import msgspec

from roost.engine.columns.types import Amounts, Mask, Scores
from roost.errors import BadSettings, RoostError
from roost.model.allocation import Mappings
from roost.model.evidence.decision import Limits
from roost.model.request import Request
from roost.scheduler.framework.hint_names import HintNames
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec

if TYPE_CHECKING:
    from typing_extensions import TypeIs
# The changes that invalidate a verdict. "facts": only changes of facts, inventories, traits, aggregates or their
# metadata. "use": also each claim and release on the host.
Reads = Literal["facts", "use"]
# Returns the problem of an extra spec's name or value in a sentence; "" if both are valid.
ExtraSpecCheck = Callable[[str, str], str]
_Extension = TypeVar("_Extension")
_MEMBERS: dict[object, tuple[str, ...]] = {}  # names of the members of each protocol below


def implements(rule: object, protocol: type[_Extension]) -> "TypeIs[_Extension]":
    """Return whether a rule has the members of a protocol below.

    Source:
        Equal to ``isinstance`` with a protocol, which takes a hundred times as long on Python 3.11.
    """
    members = _MEMBERS.get(protocol)
    if members is None:
        names = (*vars(protocol), *get_annotations(protocol))
        members = _MEMBERS[protocol] = tuple(name for name in names if not name.startswith("_"))
    for name in members:  # noqa: SIM110  # a loop takes half the time of a generator
        if not hasattr(rule, name):
            return False
    return True


class NoOptions(msgspec.Struct, frozen=True):
    """Options of a rule without options."""


class Filter(Protocol):
    """A rule that rejects hosts. Pure: it judges each host independently and changes nothing."""

    name: ClassVar[str]  # equal to the name of its file
    nova_name: ClassVar[str]  # Nova's class name, or ""
    section: ClassVar[str]  # section of its options in the settings
    options: ClassVar[type[msgspec.Struct]]
    run_filter_once_per_request: ClassVar[bool]  # only for Nova's classes (roost.compat); see ``reads``
    run_on_rebuild: ClassVar[bool]  # whether it also judges the host before a rebuild

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict about this request."""

    def concerns(self, spec: Spec) -> bool:
        """Return whether the rule can reject any host for this request; if not, it is not called.

        The result is equal for all requests of one shape, regardless of changes in hosts and groups.
        """

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Return the verdicts: bool, shape (len(hosts),), in the order of ``hosts``."""

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts, without a subject: "are disabled or down"."""


class TimeDependent(Protocol):
    """A filter whose verdicts may change with time alone."""

    def holds_until_s(self, hosts: HostView, spec: Spec) -> float:
        """Return the last moment at which the present verdicts hold, on the clock of ``spec.now_s``."""


class Shareable(Protocol):
    """A filter whose "facts" verdicts depend only on a part of the request."""

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return this part: requests with equal keys share verdicts until facts change."""


class Countable(Protocol):
    """A filter whose "use" verdicts can be predicted, to count how many more instances fit."""

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return how many more instances each host accepts if no other host gets one: int64, 0..HEADROOM_MAX."""

    def is_independent(self, spec: Spec) -> bool:
        """Return whether an instance on one host leaves the verdicts on all other hosts unchanged."""


class SupportsHostReasons(Protocol):
    """A filter with a specific reason for each rejected host."""

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Return the reason for each of the rejected hosts, without a subject; empty if unknown."""


class SupportsWarnings(Protocol):
    """A rule that ignores values it cannot read."""

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Return one sentence per ignored value."""


class DeclaresHints(Protocol):
    """A rule class with the names of the scheduler hints that it reads. Roost warns about all other hints."""

    hints: ClassVar[tuple[str, ...]]


class SupportsBadOptions(Protocol):
    """A rule class that ignores invalid values in its options."""

    @staticmethod
    def bad_options(options: Any) -> list[BadSettings]:
        """Return an error for each ignored value; raise nothing."""


class SupportsRequestCheck(Protocol):
    """A filter that rejects invalid requests before the search."""

    def check(self, spec: Spec) -> None:
        """Check a request that concerns the rule, before any host is judged.

        Raises:
            BadRequest: the request is invalid.
        """


class SupportsLimits(Protocol):
    """A filter that passes limits to the chosen host, so that the host can check them itself.

    It is called for chosen hosts and alternates, but never for forced hosts.
    """

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return the limits of each host, in order; of equal names, the last rule's limit wins."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fault:
    """An error of a rule in one pass over hosts."""

    hosts: Mask  # bool, shape (hosts,): hosts without a verdict
    refuses: str  # "request": the whole request, if one of these hosts passed all earlier checks; "host": these hosts
    text: str  # the rule and its error: "acme raised ValueError: no number"


class OncePerRequest(Protocol):
    """A filter that judges each host once per request, regardless of the number of instances."""

    def begin(self) -> None:
        """Cache verdicts until ``end``."""

    def end(self) -> None:
        """Drop the cached verdicts."""


class Fallible(Protocol):
    """A filter whose calls may fail."""

    @property
    def fault(self) -> Fault | None:
        """The error of the last call, if any."""


class JudgesCandidates(Protocol):
    """A filter that also judges the providers of a candidate.

    Its ``keep`` accepts a host if ``accepts`` is true for one of ``hosts.mappings``. The instance gets the first
    candidate of the chosen host that all such filters accept.
    """

    def accepts(self, hosts: HostView, spec: Spec, *, at: int, mappings: Mappings) -> bool:
        """Return whether a candidate on one host is acceptable.

        Args:
            at: position of the host in the view.
            mappings: of the candidate: suffix of a request group -> uuids of the providers that serve it.
        """


class ChangesPerInstance(Protocol):
    """A rule that reads facts changed by each instance of the request, such as free devices."""

    def changes_per_instance(self, spec: Spec) -> bool:
        """Return whether each instance of the request changes the input of the rule for later instances."""


def changes_per_instance(rule: object, spec: Spec) -> bool:
    """Return whether verdicts or raw weights of a rule change from one instance of a request to the next."""
    return spec.is_multiple and implements(rule, ChangesPerInstance) and rule.changes_per_instance(spec)


class Judge:
    """A filter and its optional extensions, looked up once; None for each missing extension."""

    __slots__ = (
        "candidate_judge",
        "fallible",
        "limiter",
        "name",
        "per_instance",
        "request_check",
        "rule",
        "run_on_rebuild",
        "shareable",
        "time_dependent",
        "warner",
    )

    def __init__(self, rule: Filter) -> None:
        self.rule = rule
        self.name = rule.name
        self.run_on_rebuild = rule.run_on_rebuild
        self.request_check = rule if implements(rule, SupportsRequestCheck) else None
        self.candidate_judge = rule if implements(rule, JudgesCandidates) else None
        self.per_instance = rule if implements(rule, ChangesPerInstance) else None
        self.fallible = rule if implements(rule, Fallible) else None
        self.limiter = rule if implements(rule, SupportsLimits) else None
        self.shareable = rule if implements(rule, Shareable) else None
        self.time_dependent = rule if implements(rule, TimeDependent) else None
        self.warner = rule if implements(rule, SupportsWarnings) else None

    def changes_per_instance(self, spec: Spec) -> bool:
        """Return whether its verdicts change from one instance of a request to the next."""
        return spec.is_multiple and self.per_instance is not None and self.per_instance.changes_per_instance(spec)


class Weigher(Protocol):
    """A rule that orders hosts. Pure, like a filter."""

    name: ClassVar[str]
    nova_name: ClassVar[str]
    section: ClassVar[str]
    options: ClassVar[type[msgspec.Struct]]
    aggregate_key: ClassVar[str]  # metadata key of an aggregate for the multiplier of its hosts
    minval: ClassVar[float | None]  # lower end of the scale; None: minimum of the accepted hosts
    maxval: ClassVar[float | None]
    sign: ClassVar[float]  # -1: negates the multiplier of the option or aggregate

    @property
    def multiplier(self) -> float:
        """The weigher's factor in the score, unless an aggregate sets one; a negative factor reverses the order.

        It already includes ``sign``; a value from aggregate metadata must be multiplied by ``sign``.
        """

    def concerns(self, spec: Spec) -> bool:
        """Return whether hosts can differ for this request; if not, every raw weight is 0."""

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the raw weights: float64, shape (len(hosts),), in the unit of the weighed quantity."""


class FactsOnly(Protocol):
    """A weigher whose raw weights depend only on host facts and aggregates, not on the request."""

    reads_facts_only: ClassVar[Literal[True]]


class HostsAlone(Protocol):
    """A weigher whose raw weight of a host depends on the request and on that host alone.

    The host's columns, facts, traits, aggregates and the providers of its tree count; other hosts, server groups and
    sharing providers do not. Roost keeps the raw weights, and recomputes them only for hosts that changed. So ``raw``
    gets views of a few hosts.
    """

    def weight_key(self, hosts: HostView, spec: Spec) -> Hashable:
        """Return everything but the host that the raw weights depend on: a part of the request, a learned table.

        Requests with equal keys share raw weights. It is called at each decision.

        Args:
            hosts: all hosts.
        """


class OrdersProviders(Protocol):
    """A weigher with a preference among the providers of a host, such as its devices.

    The instance takes the cheapest provider with room, and of equals the first. Of several such weighers, the first
    with a preference decides. A weigher with the multiplier 0 does not take part.
    """

    def provider_costs(
        self, host: HostView, spec: Spec, *, resource_class: str, amount: int
    ) -> Scores | Sequence[float] | None:
        """Return the cost of an amount of a class on each provider of one host; None: no preference.

        Args:
            host: a view of one host.
            resource_class, amount: part of the request that one provider has to serve.

        Returns:
            float64, in the order of ``host.class_rows(resource_class).providers[0]``; finite where the amount fits.
        """


class Learns(Protocol):
    """A weigher with a lesson from requests as they arrive.

    Roost counts each request once, granted or refused, after its decision is durable. At 100, 200, 400, … counted
    requests, and then at most 10,000 requests apart, ``learn`` returns the body of a new lesson, a document of the
    database. All processes use it from the same change of the database on, so decisions replay. The weigher reads it
    by ``hosts.lesson(lesson_name)``.
    """

    @property
    def lesson_name(self) -> str:
        """The name of the lesson: the weigher's own, with the options behind its observations."""

    def observe(self, request: Request) -> msgspec.Struct | None:
        """Return the part of a request for ``learn``; None: nothing."""

    def learn(self, body: bytes | None, observations: Sequence[Any], hosts: HostView) -> bytes | None:
        """Return the next document; None: drop the observations.

        Args:
            body: the present document; None: the first is to be written.
            observations: results of ``observe`` since then.
            hosts: all hosts.
        """


class SupportsComparison(Protocol):
    """A weigher with words for its preference of a host."""

    def compare(self, hosts: HostView, spec: Spec) -> str:
        """Compare the first of two hosts with the second: "strands 1.20 GPUs less"; empty: no difference."""


class SupportsMultipliers(Protocol):
    """A weigher with its own multiplier per host, as weighers written for Nova may have."""

    def multipliers(self, hosts: HostView, spec: Spec) -> Scores | None:
        """Return the multiplier of each host: float64, shape (len(hosts),); None: ``multiplier`` applies everywhere."""


class SupportsUnweighable(Protocol):
    """A weigher that cannot weigh every host: the raw weight of such hosts is NaN."""

    def unweighable(self, hosts: HostView, spec: Spec) -> RoostError:
        """Return the error for the first of these unweighable hosts."""


@contextmanager
def request_scope(filters: Sequence[OncePerRequest]) -> Iterator[None]:
    """Let filters that judge once per request cache their verdicts in this block."""
    for rule in filters:
        rule.begin()
    try:
        yield
    finally:
        for rule in filters:
            rule.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The enabled rules, in the order of the settings."""

    filters: tuple[Filter, ...]
    weighers: tuple[Weigher, ...]
    check_extra_spec: ExtraSpecCheck | None = None  # None: extra specs are not checked
    hints: HintNames | None = None  # None: hints are not checked

    def request_problems(self, request: Request) -> tuple[str, ...]:
        """Return one sentence for each invalid extra spec of the flavor, and for each hint without effect."""
        extra_spec, hints = self.check_extra_spec, self.hints
        problems: list[str] = []
        if extra_spec is not None:
            problems += (extra_spec(*each) for each in request.flavor.extra_specs.items())
        if hints is not None:
            problems += (hints.problem(name) for name in request.hints)
        return tuple(filter(None, problems))
