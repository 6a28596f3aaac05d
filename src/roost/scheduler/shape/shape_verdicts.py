"""The checks of a request shape in order (search, requested hosts, filters), and their verdicts on hosts."""

from collections.abc import Sequence

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Mask, Rows
from roost.engine.feasibility.feasibility import Feasibility, StaticCheck
from roost.model.evidence.decision import Limits
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Fault, Filter, Judge, SupportsHostReasons, implements
from roost.scheduler.framework.spec import Spec, Subject


class ShapeVerdicts:
    """The checks that all requests of one shape share, in the order in which evidence lists them.

    Args:
        state: the columns; methods use these unless they get another state.
        spec: a request of this shape.
        fit: the checks of the search.
        allowed: reason and mask of the named hosts (forced, ignored, destination), if any.
        filters: the filters of the request, in the order of the settings, each with a mask. The mask holds verdicts
            that stay valid until facts change; it is None for a filter that must judge at each decision.
    """

    def __init__(
        self,
        state: State,
        spec: Spec,
        *,
        fit: Feasibility,
        allowed: tuple[str, Mask] | None,
        filters: Sequence[tuple[Judge, Mask | None]],
    ) -> None:
        self._state = state
        self._spec = spec
        self._fit = fit
        self.faults: list[str] = []  # one sentence per rule that raised an error in the last ``judge_all``
        self.failure = ""  # the first fault that refuses the whole request; empty: none
        self._all_hosts = HostView(state)
        self._filters: list[tuple[Filter | None, Mask | None]] = [] if allowed is None else [(None, allowed[1])]
        # Private copies of the verdicts that change after each instance of a request.
        self._per_instance: list[tuple[Filter, Mask]] = []
        for judge, verdict in filters:
            own = verdict
            if verdict is not None and judge.changes_per_instance(spec):
                own = verdict.copy()
                self._per_instance.append((judge.rule, own))
            self._filters.append((judge.rule, own))
        self._named_reason = "" if allowed is None else allowed[0]  # why a host is not allowed
        self.passing = len(fit) + len(self._filters)  # check number of a host that passes all checks
        self._fallible = {judge.name: judge.fallible for judge, _ in filters if judge.fallible is not None}
        self._limiters = [judge.limiter for judge, _ in filters if judge.limiter is not None]
        # The filters that judge a host's candidates; empty if any candidate is acceptable.
        judges = (judge.candidate_judge for judge, _ in filters) if spec.queries else ()
        self.candidate_judges = [judge for judge in judges if judge is not None]
        # Whether the filters' verdicts hold until the next static change.
        self.is_static = all(mask is not None for _, mask in self._filters)
        self.is_per_instance = bool(self._per_instance)

    def checks(self) -> list[tuple[str, str]]:
        """Return rule and reason of each check."""
        default = "search" if self._fit.is_searched else "requested_aggregates"  # rule name of checks without a rule
        fits = zip(self._fit.rules, self._fit.reasons, strict=True)
        return [(rule or default, reason) for rule, reason in fits] + [
            ("requested_hosts", self._named_reason) if rule is None else (rule.name, rule.reason(self._spec))
            for rule, _ in self._filters
        ]

    def subjects(self) -> list[Subject]:
        """Return the part of the request that each check judges, in the order of ``checks``."""
        subjects: list[Subject] = [
            check.about if isinstance(check, StaticCheck) else "amount" for check in self._fit.checks
        ]
        if not self._fit.is_exact:
            subjects.append("search")
        return subjects + ["hosts" if rule is None else "rule" for rule, _ in self._filters]

    @property
    def dynamic_filters(self) -> list[tuple[int, Filter]]:
        """The filters that judge at each decision, with their positions among the checks."""
        filters = enumerate(self._filters, start=len(self._fit))
        return [(at, rule) for at, (rule, mask) in filters if mask is None and rule is not None]

    def judge_all(self, state: State, spec: Spec, *, out: list[Mask], searched: dict[int, bool]) -> list[Mask]:
        """Return the verdicts of every check on all hosts, in order; ``out`` receives those that depend on amounts."""
        masks = self._fit.judge_all(state, out, searched)
        hosts = self._all_hosts if state is self._state else HostView(state)
        self.faults, self.failure = [], ""
        for rule, mask in self._filters:
            if mask is not None:
                masks.append(mask.copy() if self._per_instance else mask)
                continue
            assert rule is not None
            verdict = rule.keep(hosts, spec)
            fallible = self._fallible.get(rule.name)
            if fallible is not None and fallible.fault is not None:
                verdict = self._apply_fault(fallible.fault, verdict, masks)
            masks.append(verdict)
        return masks

    def lasting_masks(self) -> list[Mask]:
        """Return the verdicts that hold until facts change: bool, shape (hosts,), one per check."""
        return self._fit.static_masks() + [mask for _, mask in self._filters if mask is not None]

    def idle_masks(self) -> set[int]:
        """Return the ``id()`` of each lasting mask that rejects no host."""
        alive = self._state.hosts.alive.view
        return {id(mask) for mask in self.lasting_masks() if not (alive & ~mask).any()}

    def masks(self, state: State | None = None, spec: Spec | None = None) -> list[Mask]:
        """Return each check's independent verdicts on all hosts, in the order of ``checks``.

        Args:
            state: columns of the same hosts with other amounts; None: the current columns.
            spec: the request on that state.

        Returns:
            bool, shape (hosts,), one per check; ignore deleted hosts. The search judges only hosts that pass all
            earlier checks of ``fit``; for the others, its verdict is True.
        """
        state = state or self._state
        out = [np.empty(len(state.hosts), dtype=np.bool_) for _ in range(len(self._fit))]
        return self.judge_all(state, spec or self._spec, out=out, searched={})

    def refusals(self) -> Amounts:
        """Return the first check that rejects each host now, or the number of checks: int64, shape (hosts,)."""
        masks = self.masks()
        refusals: Amounts = np.full(len(self._state.hosts), len(masks), dtype=np.int64)
        for at, mask in reversed(list(enumerate(masks))):
            refusals[~mask] = at
        return refusals

    def refusal(self, row: int) -> int:
        """Return the first check that rejects one host now, or the number of checks."""
        first = self._fit.judge_host(self._state, row)
        if first < len(self._fit):
            return first
        for at, (rule, mask) in enumerate(self._filters, start=len(self._fit)):
            if mask is not None:
                passes = mask.item(row)
            else:
                assert rule is not None
                passes = rule.keep(HostView(self._state, np.array([row], dtype=np.intp)), self._spec).item(0)
            if not passes:
                return at
        return self.passing

    def refusals_of(self, rows: Rows) -> list[int]:
        """Return the first rejecting check of each host, in order."""
        checks = self._fit.judge_rows(self._state, rows)
        for at, (_, mask) in enumerate(self._filters, start=len(self._fit)):
            assert mask is not None
            checks[(checks == at) & mask[rows]] = at + 1
        refusals: list[int] = checks.tolist()
        return refusals

    def judge_again(self, rows: Rows) -> None:
        """Update verdicts on hosts whose free cells or devices changed; rows: intp."""
        for rule, mask in self._per_instance:
            mask[rows] = rule.keep(HostView(self._state, rows), self._spec)

    def host_reasons(self, at: int, rows: Rows) -> list[str]:
        """Return why a filter rejects each host; empty if it has no specific reason.

        Args:
            at: the filter's position among ``checks``.
            rows: intp, shape (rejected,).
        """
        rule = self._filters[at - len(self._fit)][0] if at >= len(self._fit) else None
        view = HostView(self._state, rows)
        return rule.host_reasons(view, self._spec) if implements(rule, SupportsHostReasons) else [""] * len(rows)

    def limits(self, row: int) -> Limits:
        """Return the limits for a chosen host; empty if no filter sets any."""
        limits: Limits = {}
        for rule in self._limiters:
            limits.update(rule.limits(HostView(self._state, np.array([row], dtype=np.intp)), self._spec)[0])
        return limits

    def _apply_fault(self, fault: Fault, verdict: Mask, masks: Sequence[Mask]) -> Mask:
        """Return a failed rule's verdicts; failures on hosts that earlier checks rejected do not matter.

        Args:
            fault: the failure.
            verdict: verdicts of the rule: bool, shape (hosts,).
            masks: verdicts of the earlier checks.
        """
        affected = fault.hosts & self._state.hosts.alive.view
        for mask in masks:
            affected &= mask
        rows = np.flatnonzero(affected)
        if not len(rows):
            return verdict
        others = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        self.faults.append(f"{fault.text}, about {self._state.hosts.names[rows[0]]}{others}")
        if fault.refuses == "host":
            return verdict
        self.failure = self.failure or self.faults[-1]
        all_rejected: Mask = np.zeros_like(verdict)
        return all_rejected
