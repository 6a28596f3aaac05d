"""Rules of somebody else, watched: one that raises, takes too long or returns nonsense refuses, and is named.

A rule that takes too long is left behind in its thread, which reads columns and writes nothing, and is told to end,
which Python code does at its next line. Until it has ended, the rule fails at once.
"""

import ctypes
import math
import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any, TypeVar, cast

import msgspec
import numpy as np

from roost.engine.columns.types import Mask, Scores
from roost.errors import BadRequest
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import (
    Fault,
    Filter,
    NoOptions,
    OncePerRequest,
    Reads,
    SupportsUnweighable,
    Weigher,
    implements,
)
from roost.scheduler.framework.spec import Spec

Result = TypeVar("Result")
_TEXT_MAX = 200  # letters of what an error says


def sandbox_filter(rule: Filter, *, limit_s: float, refuses: str) -> Filter:
    """Return a filter that is watched.

    Args:
        rule: of somebody else.
        limit_s: seconds for one call, which is one pass over the hosts; 0: any.
        refuses: what it refuses where it fails, "request" or "host".
    """
    return cast("Filter", SandboxedFilter(rule, limit_s=limit_s, refuses=refuses))


def sandbox_weigher(rule: Weigher, *, limit_s: float, refuses: str) -> tuple[Weigher, Filter]:
    """Return a weigher that is watched, and the filter that refuses where it fails; see ``guarded_filter``."""
    weigher = SandboxedWeigher(rule, limit_s=limit_s, refuses=refuses)
    return cast("Weigher", weigher), cast("Filter", Weighable(weigher))


class _Failure(Exception):
    """A rule did not give what it must; the message goes behind its name."""


class _Abandoned(BaseException):
    """Is raised in a thread that nobody waits for any more; no rule has a clause for it."""


class _Watch:
    """Calls methods of one rule, within a time.

    Args:
        name: of the rule.
        limit_s: seconds for one call, or for one pass over hosts; 0: any.
    """

    def __init__(self, name: str, *, limit_s: float) -> None:
        self._name = name
        self._limit_s = limit_s
        self._overdue: threading.Thread | None = None

    def deadline_s(self) -> float:
        """Return the moment, of a clock that never goes back, by which a pass that begins now must have ended."""
        return monotonic() + self._limit_s if self._limit_s else math.inf

    def call(self, act: Callable[[], Result], *, deadline_s: float | None = None) -> Result:
        """Call something of the rule.

        Raises:
            _Failed: it raised, took too long, or has not ended an earlier call.
        """
        if not self._limit_s:
            return self._catch(act)
        if self._overdue is not None and self._overdue.is_alive():
            raise _Failure(f"took more than {self._limit_s:g} s before, and has not ended yet")
        results: list[Result] = []
        failures: list[_Failure] = []
        thread = threading.Thread(
            target=self._run, args=(act, results, failures), name=f"rule {self._name}", daemon=True
        )
        thread.start()
        thread.join(self._limit_s if deadline_s is None else max(0.0, deadline_s - monotonic()))
        if failures:
            raise failures[0]
        if not results:
            self._overdue = thread
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_Abandoned))
            raise _Failure(f"took more than {self._limit_s:g} s")
        return results[0]

    def _run(self, act: Callable[[], Result], results: list[Result], failures: list[_Failure]) -> None:
        try:
            results.append(self._catch(act))
        except _Failure as failed:
            failures.append(failed)
        except _Abandoned:
            return

    @staticmethod
    def _catch(act: Callable[[], Result]) -> Result:
        try:
            return act()
        except (_Failure, BadRequest):
            raise
        except (Exception, SystemExit) as error:
            text = " ".join(str(error).split())[:_TEXT_MAX]
            raise _Failure(f"raised {type(error).__name__}" + (f": {text}" if text else "")) from error


class _Sandboxed:
    """What guarded filters and weighers have in common."""

    def __init__(self, rule: Any, *, limit_s: float, refuses: str) -> None:
        self.rule = rule  # that is watched
        self.name: str = rule.name
        self.nova_name: str = rule.nova_name
        self.section: str = rule.section
        self.options: type[msgspec.Struct] = rule.options
        self.fault: Fault | None = None  # of the last pass
        self._refuses = refuses
        self._watch = _Watch(rule.name, limit_s=limit_s)

    def concerns(self, spec: Spec) -> bool:
        """Ask the rule; where it cannot say, it concerns the request, and will fail there."""
        return bool(self._call("concerns", True, spec))

    def _call(self, method: str, otherwise: Any, *arguments: object) -> Any:
        """Call a method of the rule, or return what is to be taken for its answer where that fails."""
        try:
            return self._watch.call(partial(getattr(self.rule, method), *arguments))
        except _Failure:
            return otherwise

    def _judge_hosts(self, hosts: HostView, judge: Callable[[HostView], Any], blank: Any) -> Any:
        """Ask about hosts, all at once or, where that fails, one by one, and keep the fault.

        Args:
            hosts: those asked about.
            judge: asks about some hosts, and raises ``_Failed`` for what is nonsense.
            blank: what stands for hosts that it fails for: shape (len(hosts),).
        """
        self.fault = None
        deadline_s = self._watch.deadline_s()
        try:
            return self._watch.call(partial(judge, hosts), deadline_s=deadline_s)
        except _Failure as failed:
            whole_failure = str(failed)
        results, failures = blank, np.zeros(len(hosts), dtype=np.bool_)
        first_failure = ""
        for at in range(len(hosts)):
            if monotonic() >= deadline_s:
                failures[at:] = True
                break
            try:
                one = hosts.subset(np.array([at], dtype=np.intp))
                results[at] = self._watch.call(partial(judge, one), deadline_s=deadline_s)[0]
            except _Failure as failed:
                first_failure = first_failure or str(failed)
                failures[at] = True
        if not failures.any():  # It fails for all together only, so for all.
            failures[:] = True
            results[:] = 0
        self.fault = Fault(hosts=failures, refuses=self._refuses, text=f"{self.name} {first_failure or whole_failure}")
        return results


class SandboxedFilter(_Sandboxed):
    """A filter of somebody else. What it can do beside what every filter can, this one can too."""

    def __init__(self, rule: Filter, *, limit_s: float, refuses: str) -> None:
        super().__init__(rule, limit_s=limit_s, refuses=refuses)
        self.run_filter_once_per_request = rule.run_filter_once_per_request
        self.run_on_rebuild = rule.run_on_rebuild
        if implements(rule, OncePerRequest):
            self.begin, self.end = rule.begin, rule.end
        # Set on the object, since whoever asks whether a rule can do something looks for the method.
        for method, otherwise in _OPTIONAL.items():
            if hasattr(rule, method):
                setattr(self, method, partial(self._call_optional, method, otherwise))

    def reads(self, spec: Spec) -> Reads:
        """Ask the rule; where it cannot say, it is asked at each decision."""
        verdict: Reads = "facts" if self._call("reads", "use", spec) == "facts" else "use"
        return verdict

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Ask the rule; hosts for which it fails are refused."""
        blank: Mask = np.zeros(len(hosts), dtype=np.bool_)
        verdicts: Mask = self._judge_hosts(hosts, partial(self._verdict, spec), blank)
        return verdicts

    def reason(self, spec: Spec) -> str:
        """Ask the rule."""
        return str(self._call("reason", f"do not pass {self.name}", spec))

    def _verdict(self, spec: Spec, hosts: HostView) -> Mask:
        verdicts = np.asarray(self.rule.keep(hosts, spec))
        if verdicts.shape != (len(hosts),) or verdicts.dtype != np.bool_:
            raise _Failure(f"returned {_describe_result(verdicts)} in place of one truth a host")
        return verdicts

    def _call_optional(self, method: str, otherwise: Callable[[int], Any], *arguments: Any) -> Any:
        count = len(arguments[0]) if isinstance(arguments[0], HostView) else 0
        return self._call(method, otherwise(count), *arguments)


class SandboxedWeigher(_Sandboxed):
    """A weigher of somebody else; hosts for which it fails weigh 0, and ``Weighable`` refuses them."""

    def __init__(self, rule: Weigher, *, limit_s: float, refuses: str) -> None:
        super().__init__(rule, limit_s=limit_s, refuses=refuses)
        self.aggregate_key = rule.aggregate_key
        self.minval = rule.minval
        self.maxval = rule.maxval
        self.sign = rule.sign
        for more in ("reads_facts_only", "unweighable", "warnings"):
            if hasattr(rule, more):
                setattr(self, more, getattr(rule, more))
        if hasattr(rule, "multipliers"):
            self.multipliers = partial(self._call, "multipliers", None)

    @property
    def multiplier(self) -> float:
        """Ask the rule; where it cannot say, it counts for nothing."""
        try:
            return self._watch.call(lambda: float(self.rule.multiplier))
        except _Failure:
            return 0.0

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Ask the rule."""
        blank: Scores = np.zeros(len(hosts), dtype=np.float64)
        weights: Scores = self._judge_hosts(hosts, partial(self._weights, spec), blank)
        return weights

    def _weights(self, spec: Spec, hosts: HostView) -> Scores:
        float(self.rule.multiplier)  # What has no weight in the sum has none.
        weights = np.asarray(self.rule.raw(hosts, spec))
        is_numeric = weights.shape == (len(hosts),) and weights.dtype == np.float64
        if (
            not is_numeric
            or np.isinf(weights).any()
            or (np.isnan(weights).any() and not implements(self, SupportsUnweighable))
        ):
            raise _Failure(f"returned {_describe_result(weights)} in place of one finite number a host")
        return weights


class Weighable:
    """Keep hosts that a weigher of somebody else can weigh."""

    section = "filter_scheduler"
    options = NoOptions
    nova_name = ""
    run_filter_once_per_request = False
    run_on_rebuild = True

    def __init__(self, weigher: SandboxedWeigher) -> None:
        self._weigher = weigher
        self.name = weigher.name

    @property
    def fault(self) -> Fault | None:
        """What went wrong in the last pass."""
        return self._weigher.fault

    def reads(self, spec: Spec) -> Reads:
        """Say "facts" for a weigher of facts."""
        return "facts" if hasattr(self._weigher, "reads_facts_only") else "use"

    def concerns(self, spec: Spec) -> bool:
        """Say whether the weigher is asked."""
        return self._weigher.concerns(spec)

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Weigh hosts, and keep those for which that works."""
        self._weigher.raw(hosts, spec)
        fault = self._weigher.fault
        verdicts: Mask = np.ones(len(hosts), dtype=np.bool_) if fault is None else ~fault.hosts
        return verdicts

    def reason(self, spec: Spec) -> str:
        """Say who cannot weigh them."""
        return f"cannot be weighed by {self.name}"


def _describe_result(result: np.ndarray) -> str:
    """Say what a rule returned."""
    if result.dtype == np.float64 and result.ndim == 1:
        odd = result[~np.isfinite(result)]
        return str(odd[0]) if len(odd) else f"{len(result):,} numbers"
    return f"{result.dtype} of shape {result.shape}" if result.ndim else f"{result.item()!r}"[:_TEXT_MAX]


def _empty_texts(count: int) -> Sequence[str]:
    return [""] * count


# What is taken for the answer of a method that fails, by the number of hosts asked about.
_OPTIONAL: dict[str, Callable[[int], Any]] = {
    "holds_until_s": lambda _count: -np.inf,
    "verdict_key": lambda _count: object(),
    "room": lambda count: np.zeros(count, dtype=np.int64),
    "is_independent": lambda _count: False,
    "host_reasons": _empty_texts,
    "warnings": lambda _count: [],
    "check": lambda _count: None,
    "limits": lambda count: [{} for _ in range(count)],
}
