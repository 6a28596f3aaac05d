"""What a rule is: the contract between the pipeline and every filter and weigher."""

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
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec

if TYPE_CHECKING:
    from typing_extensions import TypeIs
# When a verdict has to be made again: "facts" only when facts, inventories, labels or metadata of
# aggregates change; "use" also when a claim or a release touches the host.
Reads = Literal["facts", "use"]
# What is wrong with the name or the value of an extra spec, in a sentence; nothing where they are right.
ExtraSpecCheck = Callable[[str, str], str]
_Extension = TypeVar("_Extension")
_MEMBERS: dict[object, tuple[str, ...]] = {}  # what the protocols below add


def implements(rule: object, what: type[_Extension]) -> "TypeIs[_Extension]":
    """Say whether a rule has what one of the protocols below adds to every rule.

    Source:
        ``isinstance`` with a protocol says the same, in a hundred times the time on Python 3.11.
    """
    members = _MEMBERS.get(what)
    if members is None:
        names = (*vars(what), *get_annotations(what))
        members = _MEMBERS[what] = tuple(name for name in names if not name.startswith("_"))
    for name in members:  # noqa: SIM110  # a loop takes half the time of a generator
        if not hasattr(rule, name):
            return False
    return True


class NoOptions(msgspec.Struct, frozen=True):
    """Options of a rule that has none."""


class Filter(Protocol):
    """A rule that refuses hosts. Pure: it judges each host on its own and edits nothing."""

    name: ClassVar[str]  # that of its file
    nova_name: ClassVar[str]  # Nova's class, "" if Nova has none
    section: ClassVar[str]  # of its options in the settings
    options: ClassVar[type[msgspec.Struct]]
    run_filter_once_per_request: ClassVar[bool]  # read by Nova's classes (roost.compat) alone; here ``reads`` says it
    run_on_rebuild: ClassVar[bool]  # whether it judges requests that only check a rebuild

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict about this request has to be made again."""

    def concerns(self, spec: Spec) -> bool:
        """Say whether the rule can refuse any host for this request; if not, it is not asked.

        The answer is the same for all requests of one shape, whatever happens to hosts and groups.
        """

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Return the verdicts: bool, shape (len(hosts),), in the order of ``hosts``."""

    def reason(self, spec: Spec) -> str:
        """Say what the hosts it refuses lack, without a subject: "are disabled or down"."""


class TimeDependent(Protocol):
    """What a filter adds whose verdicts change by the mere passing of time."""

    def holds_until_s(self, hosts: HostView, spec: Spec) -> float:
        """Return the last moment, in the time of ``spec.now_s``, at which its verdicts of now still hold."""


class Shareable(Protocol):
    """What a filter adds whose "facts" verdicts depend on a part of the request only."""

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return that part: requests equal in it share a verdict while no facts change."""


class Countable(Protocol):
    """What a filter adds whose "use" verdicts can be told ahead, for counting how many more instances fit."""

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return how many more instances it lets each host take that takes all of them: int64, 0..ROOM_MAX."""

    def is_independent(self, spec: Spec) -> bool:
        """Say whether an instance on one host changes its verdicts on no other."""


class SupportsHostReasons(Protocol):
    """What a filter adds that can say of each host why it refuses it."""

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say of hosts that it refuses what each is or has, without a subject; empty where it cannot."""


class SupportsWarnings(Protocol):
    """What a rule adds that passes over what it cannot read."""

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say what was passed over, a sentence each."""


class SupportsBadOptions(Protocol):
    """What the class of a rule adds whose options may hold what it passes over."""

    @staticmethod
    def bad_options(options: Any) -> list[BadSettings]:
        """Say what of its options is passed over, and why; nothing is raised."""


class SupportsRequestCheck(Protocol):
    """What a filter adds that not every request makes sense to."""

    def check(self, spec: Spec) -> None:
        """Look at a request that concerns the rule, before any host is judged.

        Raises:
            BadRequest: it says what cannot be meant.
        """


class SupportsLimits(Protocol):
    """What a filter adds that lets a chosen host know how much it may have in use, so that it can check that itself.

    It is asked for the hosts that were chosen and for alternates, never for hosts that a request forces.
    """

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return the limits of each host, in order; where rules set one of the same name, the last rule's holds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fault:
    """What went wrong with a rule in one pass over hosts."""

    hosts: Mask  # bool, shape (hosts,), those it could say nothing of
    refuses: str  # "request", if one of them is left when the rule's turn comes, or only each "host"
    text: str  # the rule and what it did: "acme raised ValueError: no number"


class OncePerRequest(Protocol):
    """What a filter adds that judges each host once for a request, however many instances that is for."""

    def begin(self) -> None:
        """Keep verdicts from now on, until ``end``."""

    def end(self) -> None:
        """Forget the verdicts."""


class Fallible(Protocol):
    """What a filter adds that may fail."""

    @property
    def fault(self) -> Fault | None:
        """What went wrong when it was last asked; None: nothing."""


class JudgesCandidates(Protocol):
    """What a filter adds that judges by which providers a host would hold the request, too.

    Its ``keep`` keeps a host where it accepts one of ``hosts.mappings``, and the host that is chosen holds the
    request by the first way that all such filters accept.
    """

    def accepts(self, hosts: HostView, spec: Spec, *, at: int, mappings: Mappings) -> bool:
        """Say whether one way to hold the request will do on one host.

        Args:
            at: position of the host in the view.
            mappings: of the way: suffix of a resource group -> uuids of the providers that serve it.
        """


class ChangesPerInstance(Protocol):
    """What a rule adds that reads of hosts what they report, and what an instance takes of them all the same."""

    def changes_per_instance(self, spec: Spec) -> bool:
        """Say whether an instance of a request changes what the rule reads of its host, for those after it."""


def changes_per_instance(rule: object, spec: Spec) -> bool:
    """Say whether the verdicts of a rule, or its raw weights, change from one instance of a request to the next."""
    return spec.is_multiple and implements(rule, ChangesPerInstance) and rule.changes_per_instance(spec)


class Judge:
    """A filter with what it adds to every filter, which is looked up once; None where it does not add that."""

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
        """Say whether its verdicts change from one instance of a request to the next."""
        return spec.is_multiple and self.per_instance is not None and self.per_instance.changes_per_instance(spec)


class Weigher(Protocol):
    """A rule that orders hosts. Pure, like a filter."""

    name: ClassVar[str]
    nova_name: ClassVar[str]
    section: ClassVar[str]
    options: ClassVar[type[msgspec.Struct]]
    aggregate_key: ClassVar[str]  # metadata key by which an aggregate sets the multiplier of its hosts
    minval: ClassVar[float | None]  # lower end of the scale; None: that of the hosts that are left
    maxval: ClassVar[float | None]
    sign: ClassVar[float]  # -1: the multiplier is the configured value, from option or aggregate, times -1

    @property
    def multiplier(self) -> float:
        """The share of this weigher in the sum, where no aggregate says otherwise; negative turns the order.

        ``sign`` is in it already; a value from an aggregate's metadata is multiplied by ``sign`` to be one.
        """

    def concerns(self, spec: Spec) -> bool:
        """Say whether hosts can differ for this request; if not, every raw weight is 0."""

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the raw weights: float64, shape (len(hosts),), in the unit of what is weighed."""


class FactsOnly(Protocol):
    """What a weigher adds whose raw weights follow from facts of hosts and from aggregates, whatever is asked."""

    reads_facts_only: ClassVar[Literal[True]]


class SupportsMultipliers(Protocol):
    """What a weigher adds that knows itself how much it counts on each host, as those written for Nova do."""

    def multipliers(self, hosts: HostView, spec: Spec) -> Scores | None:
        """Return the multiplier of each host: float64, shape (len(hosts),); None: ``multiplier`` counts for all."""


class SupportsUnweighable(Protocol):
    """What a weigher adds that cannot weigh every host: there its raw weight is NaN."""

    def unweighable(self, hosts: HostView, spec: Spec) -> RoostError:
        """Return what to raise for the first of some hosts that it cannot weigh."""


@contextmanager
def request_scope(once: Sequence[OncePerRequest]) -> Iterator[None]:
    """Let filters that judge once for a request keep their verdicts meanwhile."""
    for rule in once:
        rule.begin()
    try:
        yield
    finally:
        for rule in once:
            rule.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The enabled rules, in the order of the settings."""

    filters: tuple[Filter, ...]
    weighers: tuple[Weigher, ...]
    check_extra_spec: ExtraSpecCheck | None = None  # says what is wrong with an extra spec; None: nobody looks
