"""Readiness: whether this process can serve requests now, check by check."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

import msgspec

from roost.errors import Unavailable
from roost.model.settings.monitoring_settings import Monitoring
from roost.observe import metrics
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.last_success import LastSuccess

# Maximum wait for a check of the database, in seconds. After that the check continues, and the last result counts.
_WAIT_S = 0.03
# Minimum seconds between two checks of the database.
_EVERY_S = 1.0


class CheckResult(msgspec.Struct, frozen=True):
    """The result of one check."""

    ok: bool
    detail: str


class ReadinessReport(msgspec.Struct, frozen=True):
    """The results of all checks, by name."""

    checks: dict[str, CheckResult]

    @property
    def is_ready(self) -> bool:
        """Whether all checks pass."""
        return all(check.ok for check in self.checks.values())

    @property
    def problem(self) -> str:
        """The details of the failed checks; empty: none failed."""
        return "; ".join(f"{name}: {check.detail}" for name, check in self.checks.items() if not check.ok)

    def body(self) -> bytes:
        """Return the report as JSON."""
        status = "ready" if self.is_ready else "not ready"
        return msgspec.json.encode({"status": status, "checks": self.checks}) + b"\n"


ReadReadiness = Callable[[], Awaitable[ReadinessReport]]


class Readiness:
    """Checks the database, the deciding thread and its queue, and the conductor of a conductor process.

    The deciding thread itself reads and writes the database, so the check uses the same connection as requests. It
    writes only if no other write has succeeded recently. At most one check of the database runs at a time.

    Args:
        serving: the deciding thread.
        limits: the current limits.
        conductor: its turns; None: this process serves clients, so its conductor does not count.
    """

    def __init__(
        self, serving: Serving, *, limits: Callable[[], Monitoring], conductor: LastSuccess | None = None
    ) -> None:
        self._serving, self._limits, self._conductor = serving, limits, conductor
        self._pending: asyncio.Future[str] | None = None
        self._submitted_s = float("-inf")
        self._read_problem = "not checked yet"

    async def __call__(self) -> ReadinessReport:
        """Run all checks, and set the metric of each."""
        limits = self._limits()
        await self._check_database(limits)
        checks = {
            "database": self._database(limits),
            "deciding_thread": self._thread(limits),
            "queue": self._queue(limits),
        }
        if self._conductor is not None:
            checks["conductor"] = _judge_age(
                "time since the last turn:", self._conductor.age_s, limits.ready_conductor_s
            )
        for name, check in checks.items():
            metrics.READY.labels(name).set(check.ok)
        return ReadinessReport(checks)

    async def _check_database(self, limits: Monitoring) -> None:
        """Start a check if none runs and the last one is old; wait a moment for its result."""
        loop = asyncio.get_running_loop()
        if self._pending is None and loop.time() - self._submitted_s >= _EVERY_S:
            outcome: Future[str] = Future()
            try:
                self._serving.submit(lambda current: self._read_and_write(current, limits), outcome)
            except Unavailable:
                return  # The other checks report a full queue, and a thread that has ended.
            self._pending, self._submitted_s = asyncio.wrap_future(outcome), loop.time()
        pending = self._pending  # Several callers may wait for it; the first one to continue clears it.
        if pending is None:
            return
        await asyncio.wait((pending,), timeout=_WAIT_S)
        if not pending.done():
            return
        if self._pending is pending:
            self._pending = None
        try:
            self._read_problem = pending.result()
        except Exception:  # noqa: BLE001  # monitoring must see every problem
            # The error may contain the address of the database, and this path needs no authentication.
            self._read_problem = "the last read failed; see the log"

    def _read_and_write(self, current: Current, limits: Monitoring) -> str:
        """Write a row unless another write has succeeded recently; the thread has just read the database."""
        writes, every_s = self._serving.writes, limits.ready_write_check_s
        if every_s and (writes.problem or writes.age_s >= every_s):
            try:
                current.store.check_writable(current.state.now_s)
            except Unavailable as error:
                self._serving.note_write(error)
            else:
                self._serving.note_write(None)
        return ""

    def _database(self, limits: Monitoring) -> CheckResult:
        loop_s = asyncio.get_running_loop().time()
        if self._pending is not None and loop_s - self._submitted_s > limits.ready_busy_s:
            return CheckResult(ok=False, detail=f"no answer for {loop_s - self._submitted_s:.0f} s")
        if self._read_problem:
            return CheckResult(ok=False, detail=self._read_problem)
        if self._serving.writes.problem:
            return CheckResult(ok=False, detail="the last write failed; see the log")
        return CheckResult(ok=True, detail="reads and writes succeed")

    def _thread(self, limits: Monitoring) -> CheckResult:
        problem = self._serving.problem or ("the server is stopping" if self._serving.is_stopped else "")
        if problem:
            return CheckResult(ok=False, detail=problem)
        return _judge_age("busy for", self._serving.busy_s, limits.ready_busy_s)

    def _queue(self, limits: Monitoring) -> CheckResult:
        count, limit = self._serving.waiting_count, self._serving.queue_max
        detail = f"{count:,} of {limit:,} requests wait"
        return CheckResult(ok=count < max(1, limits.ready_queue_share * limit), detail=detail)


def _judge_age(subject: str, age_s: float, limit_s: float) -> CheckResult:
    return CheckResult(ok=age_s <= limit_s, detail=f"{subject} {age_s:.1f} s, limit {limit_s:g} s")
