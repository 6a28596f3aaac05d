"""Sandbox for third-party rules: an error, a timeout or a malformed result becomes a refusal that names the rule.

After a timeout the rule continues in its thread, where it only reads columns. The thread gets an exception, which
Python raises at its next line. Until the thread ends, further calls of the rule fail at once.
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
_TEXT_MAX = 200  # upper bound on the characters of an error


def sandbox_filter(rule: Filter, *, limit_s: float, refuses: str) -> Filter:
    """Return a filter that runs in the sandbox.

    Args:
        rule: a third-party rule.
        limit_s: seconds for one call, which is one pass over the hosts; 0: unlimited.
        refuses: the scope of a failure, "request" or "host".
    """
    return cast("Filter", SandboxedFilter(rule, limit_s=limit_s, refuses=refuses))


def sandbox_weigher(rule: Weigher, *, limit_s: float, refuses: str) -> tuple[Weigher, Filter]:
    """Return a weigher that runs in the sandbox, and the filter for its failures; see ``sandbox_filter``."""
    weigher = SandboxedWeigher(rule, limit_s=limit_s, refuses=refuses)
    return cast("Weigher", weigher), cast("Filter", Weighable(weigher))


class _Failure(Exception):
    """The failure of a rule; its message completes a sentence after the name of the rule."""


class _Abandoned(BaseException):
    """Raised in an abandoned thread; derived from BaseException, so that rules do not catch it."""


class _TimedCalls:
    """Calls methods of one rule, within a time limit.

    Args:
        name: name of the rule.
        limit_s: seconds for one call, or for one pass over hosts; 0: unlimited.
    """

    def __init__(self, name: str, *, limit_s: float) -> None:
        self._name = name
        self._limit_s = limit_s
        self._overdue: threading.Thread | None = None

    def deadline_s(self) -> float:
        """Return the deadline of a pass that begins now, on a monotonic clock."""
        return monotonic() + self._limit_s if self._limit_s else math.inf

    def call(self, function: Callable[[], Result], *, deadline_s: float | None = None) -> Result:
        """Call a function of the rule.

        Raises:
            _Failure: the function raised an error or exceeded its time, or an earlier call has not ended.
        """
        if not self._limit_s:
            return self._catch(function)
        if self._overdue is not None and self._overdue.is_alive():
            raise _Failure(f"took more than {self._limit_s:g} s before, and has not ended yet")
        results: list[Result] = []
        failures: list[_Failure] = []
        thread = threading.Thread(
            target=self._run, args=(function, results, failures), name=f"rule {self._name}", daemon=True
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

    def _run(self, function: Callable[[], Result], results: list[Result], failures: list[_Failure]) -> None:
        try:
            results.append(self._catch(function))
        except _Failure as failure:
            failures.append(failure)
        except _Abandoned:
            return

    @staticmethod
    def _catch(function: Callable[[], Result]) -> Result:
        try:
            return function()
        except (_Failure, BadRequest):
            raise
        except (Exception, SystemExit) as error:
            text = " ".join(str(error).split())[:_TEXT_MAX]
            raise _Failure(f"raised {type(error).__name__}" + (f": {text}" if text else "")) from error


class _Sandboxed:
    """Common parts of filters and weighers in the sandbox."""

    def __init__(self, rule: Any, *, limit_s: float, refuses: str) -> None:
        self.rule = rule  # runs in the sandbox
        self.name: str = rule.name
        self.nova_name: str = rule.nova_name
        self.section: str = rule.section
        self.options: type[msgspec.Struct] = rule.options
        self.fault: Fault | None = None  # of the latest pass
        self._refuses = refuses
        self._calls = _TimedCalls(rule.name, limit_s=limit_s)

    def concerns(self, spec: Spec) -> bool:
        """Call the rule; if it fails, return True, and let its verdict fail."""
        return bool(self._call("concerns", True, spec))

    def _call(self, method: str, default: Any, *arguments: object) -> Any:
        """Call a method of the rule; if it fails, return ``default``."""
        try:
            return self._calls.call(partial(getattr(self.rule, method), *arguments))
        except _Failure:
            return default

    def _judge_hosts(self, hosts: HostView, judge: Callable[[HostView], Any], blank: Any) -> Any:
        """Judge all hosts at once; if that fails, judge them one by one, and keep the fault.

        Args:
            hosts: the hosts.
            judge: judges some hosts; raises ``_Failure`` for a malformed result.
            blank: result for hosts on which the rule fails: shape (len(hosts),).
        """
        self.fault = None
        deadline_s = self._calls.deadline_s()
        try:
            return self._calls.call(partial(judge, hosts), deadline_s=deadline_s)
        except _Failure as failure:
            view_failure = str(failure)
        results, failures = blank, np.zeros(len(hosts), dtype=np.bool_)
        first_failure = ""
        for at in range(len(hosts)):
            if monotonic() >= deadline_s:
                failures[at:] = True
                break
            try:
                host = hosts.subset(np.array([at], dtype=np.intp))
                results[at] = self._calls.call(partial(judge, host), deadline_s=deadline_s)[0]
            except _Failure as failure:
                first_failure = first_failure or str(failure)
                failures[at] = True
        if not failures.any():  # The rule judges each host alone, but not all together: reject all hosts.
            failures[:] = True
            results[:] = 0
        self.fault = Fault(hosts=failures, refuses=self._refuses, text=f"{self.name} {first_failure or view_failure}")
        return results


class SandboxedFilter(_Sandboxed):
    """A third-party filter in the sandbox, with the optional extensions of the original."""

    def __init__(self, rule: Filter, *, limit_s: float, refuses: str) -> None:
        super().__init__(rule, limit_s=limit_s, refuses=refuses)
        self.run_filter_once_per_request = rule.run_filter_once_per_request
        self.run_on_rebuild = rule.run_on_rebuild
        if implements(rule, OncePerRequest):
            self.begin, self.end = rule.begin, rule.end
        # Set on the object, because ``implements`` looks for the attribute.
        for method, default in _OPTIONAL.items():
            if hasattr(rule, method):
                setattr(self, method, partial(self._call_optional, method, default))

    def reads(self, spec: Spec) -> Reads:
        """Call the rule; if it fails, return "use", so that each decision judges again."""
        verdict: Reads = "facts" if self._call("reads", "use", spec) == "facts" else "use"
        return verdict

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Call the rule; reject the hosts on which it fails."""
        blank: Mask = np.zeros(len(hosts), dtype=np.bool_)
        verdicts: Mask = self._judge_hosts(hosts, partial(self._verdict, spec), blank)
        return verdicts

    def reason(self, spec: Spec) -> str:
        """Call the rule."""
        return str(self._call("reason", f"do not pass {self.name}", spec))

    def _verdict(self, spec: Spec, hosts: HostView) -> Mask:
        verdicts = np.asarray(self.rule.keep(hosts, spec))
        if verdicts.shape != (len(hosts),) or verdicts.dtype != np.bool_:
            raise _Failure(f"returned {_describe_result(verdicts)} instead of one bool per host")
        return verdicts

    def _call_optional(self, method: str, default: Callable[[int], Any], *arguments: Any) -> Any:
        count = len(arguments[0]) if isinstance(arguments[0], HostView) else 0
        return self._call(method, default(count), *arguments)


class SandboxedWeigher(_Sandboxed):
    """A third-party weigher in the sandbox; hosts on which it fails weigh 0, and ``Weighable`` rejects them."""

    def __init__(self, rule: Weigher, *, limit_s: float, refuses: str) -> None:
        super().__init__(rule, limit_s=limit_s, refuses=refuses)
        self.aggregate_key = rule.aggregate_key
        self.minval = rule.minval
        self.maxval = rule.maxval
        self.sign = rule.sign
        for name in ("reads_facts_only", "unweighable", "warnings"):
            if hasattr(rule, name):
                setattr(self, name, getattr(rule, name))
        if hasattr(rule, "multipliers"):
            self.multipliers = partial(self._call, "multipliers", None)
        if hasattr(rule, "provider_costs"):
            self.provider_costs = self._check_costs
        if hasattr(rule, "lesson_name"):
            self.lesson_name = str(rule.lesson_name)
            self.observe = partial(self._call, "observe", None)
            self.learn = self._check_document
        if hasattr(rule, "compare"):
            self.compare = partial(self._call, "compare", "")

    @property
    def multiplier(self) -> float:
        """Call the rule; if it fails, return 0."""
        try:
            return self._calls.call(lambda: float(self.rule.multiplier))
        except _Failure:
            return 0.0

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Call the rule."""
        blank: Scores = np.zeros(len(hosts), dtype=np.float64)
        weights: Scores = self._judge_hosts(hosts, partial(self._weights, spec), blank)
        return weights

    def _check_document(self, body: bytes | None, observations: Sequence[Any], hosts: HostView) -> bytes | None:
        """Call the rule; if it fails or returns no bytes, return None."""
        document = self._call("learn", None, body, observations, hosts)
        return document if isinstance(document, bytes) else None

    def _check_costs(self, host: HostView, spec: Spec, *, resource_class: str, amount: int) -> Scores | None:
        """Call the rule; if it fails or returns no number for a provider, return None."""
        call = partial(self.rule.provider_costs, host, spec, resource_class=resource_class, amount=amount)
        try:
            costs = self._calls.call(lambda: None if (found := call()) is None else np.asarray(found))
        except _Failure:
            return None
        providers = host.class_rows(resource_class).providers[0]
        if costs is None or costs.shape != providers.shape or costs.dtype != np.float64:
            return None
        return None if np.isnan(costs[providers >= 0]).any() else costs

    def _weights(self, spec: Spec, hosts: HostView) -> Scores:
        float(self.rule.multiplier)  # Without a valid multiplier there is no weight.
        weights = np.asarray(self.rule.raw(hosts, spec))
        is_numeric = weights.shape == (len(hosts),) and weights.dtype == np.float64
        if (
            not is_numeric
            or np.isinf(weights).any()
            or (np.isnan(weights).any() and not implements(self, SupportsUnweighable))
        ):
            raise _Failure(f"returned {_describe_result(weights)} instead of one finite number per host")
        return weights


class Weighable:
    """Keep hosts that a third-party weigher can weigh."""

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
        """The fault of the latest pass."""
        return self._weigher.fault

    def reads(self, spec: Spec) -> Reads:
        """Return "facts" for a weigher that only reads facts."""
        return "facts" if hasattr(self._weigher, "reads_facts_only") else "use"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the weigher applies."""
        return self._weigher.concerns(spec)

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Weigh hosts, and keep those without a failure."""
        self._weigher.raw(hosts, spec)
        fault = self._weigher.fault
        verdicts: Mask = np.ones(len(hosts), dtype=np.bool_) if fault is None else ~fault.hosts
        return verdicts

    def reason(self, spec: Spec) -> str:
        """Name the weigher."""
        return f"cannot be weighed by {self.name}"


def _describe_result(result: np.ndarray) -> str:
    """Describe the result of a rule."""
    if result.dtype == np.float64 and result.ndim == 1:
        invalid = result[~np.isfinite(result)]
        return str(invalid[0]) if len(invalid) else f"{len(result):,} numbers"
    return f"{result.dtype} of shape {result.shape}" if result.ndim else f"{result.item()!r}"[:_TEXT_MAX]


def _empty_texts(count: int) -> Sequence[str]:
    return [""] * count


# The default result of each optional method that fails, by the number of hosts.
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
