"""What a rule is: the contract between the pipeline and every filter and weigher."""

from typing import ClassVar, Literal, Protocol

import msgspec

from roost.engine.types import Mask, Scores
from roost.scheduler.hosts import HostView
from roost.scheduler.spec import Spec

# When a verdict has to be made again: "facts" only when facts, inventories, labels or metadata of
# aggregates change; "use" also when a claim or a release touches the host.
Reads = Literal["facts", "use"]


class NoOptions(msgspec.Struct, frozen=True):
    """Options of a rule that has none."""


class Filter(Protocol):
    """A rule that refuses hosts. Pure: it judges each host on its own and edits nothing."""

    name: ClassVar[str]  # that of its file
    nova_name: ClassVar[str]  # Nova's class, "" if Nova has none
    section: ClassVar[str]  # of its options in the settings
    options: ClassVar[type[msgspec.Struct]]
    reads: ClassVar[Reads]
    run_filter_once_per_request: ClassVar[bool]
    run_on_rebuild: ClassVar[bool]

    def concerns(self, spec: Spec) -> bool:
        """Say whether the rule can refuse any host for this request; if not, it is not asked."""

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Return the verdicts: bool, shape (len(hosts),), in the order of ``hosts``."""

    def reason(self, spec: Spec) -> str:
        """Say what the hosts it refuses lack, without a subject: "are disabled or down"."""


class Weigher(Protocol):
    """A rule that orders hosts. Pure, like a filter."""

    name: ClassVar[str]
    nova_name: ClassVar[str]
    section: ClassVar[str]
    options: ClassVar[type[msgspec.Struct]]
    aggregate_key: ClassVar[str]  # metadata key by which an aggregate sets the multiplier of its hosts
    minval: ClassVar[float | None]  # lower end of the scale; None: that of the hosts that are left
    maxval: ClassVar[float | None]

    @property
    def multiplier(self) -> float:
        """The share of this weigher in the sum, where no aggregate says otherwise; negative turns the order."""

    def concerns(self, spec: Spec) -> bool:
        """Say whether hosts can differ for this request; if not, every raw weight is 0."""

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the raw weights: float64, shape (len(hosts),), in the unit of what is weighed."""
