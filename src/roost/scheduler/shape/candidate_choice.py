"""The choice among a host's candidates if filters judge candidates too."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.candidates.provider_order import ProviderOrder
from roost.engine.candidates.search import to_mappings
from roost.engine.candidates.walk import RowCandidate
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask
from roost.model.allocation import Mappings
from roost.scheduler.framework.host_view import HostView, candidates_on
from roost.scheduler.framework.plugin import JudgesCandidates, NoOptions, Reads
from roost.scheduler.framework.spec import Spec


class Agreement:
    """Keep hosts with at least one candidate that all judging filters accept."""

    name: ClassVar = "search"
    nova_name: ClassVar = ""
    section: ClassVar = "filter_scheduler"
    options: ClassVar[type[msgspec.Struct]] = NoOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, judges: Sequence[JudgesCandidates]) -> None:
        self._judges = judges

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "use"

    def concerns(self, spec: Spec) -> bool:
        """Return whether candidates are judged by more than one filter."""
        return bool(spec.queries) and len(self._judges) > 1

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with a candidate that all filters accept."""
        verdicts = [
            any(self._accept(hosts, spec, at=at, mappings=mappings) for mappings in hosts.mappings(at, spec.queries))
            for at in range(len(hosts))
        ]
        return np.array(verdicts, dtype=np.bool_)

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return "have no candidate that all filters accept"

    def _accept(self, hosts: HostView, spec: Spec, *, at: int, mappings: Mappings) -> bool:
        return all(rule.accepts(hosts, spec, at=at, mappings=mappings) for rule in self._judges)


def choose_candidate(
    state: State,
    spec: Spec,
    row: int,
    *,
    judges: Sequence[JudgesCandidates],
    provider_order: ProviderOrder | None = None,
) -> RowCandidate | None:
    """Return a host's first candidate that all filters accept, if any."""
    host = HostView(state, np.array([row], dtype=np.intp))
    for candidate in candidates_on(state, row, spec.queries, provider_order=provider_order):
        mappings = to_mappings(state, candidate)
        if all(rule.accepts(host, spec, at=0, mappings=mappings) for rule in judges):
            return candidate
    return None
