"""Run a workload through a scheduler, and measure the result."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from roost.engine.columns.types import Amounts
from roost.errors import BadRequest
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, Fleet
from roost.model.request import Request
from roost.scheduler.framework.reasons import bare_reason
from roost.simulator.report import ClassUse, RefusedReason, ReplayReport
from roost.simulator.series import Sampler, percentiles_us
from roost.simulator.workload import Workload

CHUNK = 64  # acts per call of the scheduler; they share a commit

Progress = Callable[[int, int], None]  # finished requests, all requests


class ReplayTarget(Protocol):
    """The scheduler under test: installs a fleet and decides on it."""

    def install(self, fleet: Fleet) -> None:
        """Create the fleet: providers, hosts, aggregates, server groups. Durable on return."""

    def work(self, acts: Sequence[Request | Departure]) -> list[Decision | None]:
        """Execute the acts in order; each sees the effects of all earlier acts. Durable on return.

        Returns:
            One entry per act: its decision, or None for a departure.
        """

    def utilisation(self) -> dict[str, tuple[int, int]]:
        """Return the used amount and the capacity of each resource class in the fleet."""

    def free_by_provider(self, resource_class: str) -> Amounts:
        """Return the free amounts of a class.

        Returns:
            int64, shape (providers of the class,), in the order of the installed ``Fleet.providers``.
        """


def replay(
    workload: Workload,
    target: ReplayTarget,
    *,
    chunk: int = CHUNK,
    progress: Progress | None = None,
    elapsed_s: Callable[[], float] = time.perf_counter,
) -> ReplayReport:
    """Install the fleet of a workload, run its events, and report.

    Args:
        chunk: acts per call of the scheduler, >= 1.
        progress: called after each chunk.
        elapsed_s: a monotonic clock; only calls of ``target`` are timed.

    Raises:
        BadRequest: the chunk is below 1.
    """
    if chunk < 1:
        raise BadRequest(f"a chunk must be 1 act or more, got {chunk}")
    start_s = elapsed_s()
    target.install(workload.fleet)
    install_s = elapsed_s() - start_s
    tally, sampler = _Tally(), Sampler(workload, target)
    acts = [event.act for event in workload.events]
    requests = sum(isinstance(act, Request) for act in acts)
    for first in range(0, len(acts), chunk):
        part = acts[first : first + chunk]
        start_s = elapsed_s()
        decisions = target.work(part)
        tally.work_s += elapsed_s() - start_s
        tally.count_chunk(part, decisions)
        used = target.utilisation()
        tally.record_peaks(used)
        sampler.sample(first + len(part), counters=tally, used=used)
        if progress is not None and requests:
            progress(len(tally.decision_s), requests)
    return _report(workload, target, tally=tally, sampler=sampler, install_s=install_s)


class _Tally:
    """Counters of a replay."""

    def __init__(self) -> None:
        self.placed = 0
        self.instances_placed = 0
        self.alive: set[str] = set()
        self.reasons: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.decision_s: list[float] = []
        self.peaks: dict[str, int] = {}
        self.work_s = 0.0

    def count_chunk(self, acts: Sequence[Request | Departure], decisions: Sequence[Decision | None]) -> None:
        """Count a chunk."""
        for act, decision in zip(acts, decisions, strict=True):
            if isinstance(act, Departure):
                self.alive.difference_update(act.instance_uuids)
                continue
            assert decision is not None, "a request without a decision"
            self.decision_s.append(decision.search_s + decision.rank_s)
            if decision.is_granted:
                self.placed += 1
                self.instances_placed += len(decision.picks)
                self.alive.update(pick.instance_uuid for pick in decision.picks)
                continue
            reason = bare_reason(decision.reason)
            self.reasons[reason] += 1
            self.examples.setdefault(reason, decision.reason)

    def record_peaks(self, utilisation: dict[str, tuple[int, int]]) -> None:
        """Update the peaks."""
        for resource_class, (used, _) in utilisation.items():
            self.peaks[resource_class] = max(used, self.peaks.get(resource_class, 0))


def _report(
    workload: Workload, target: ReplayTarget, *, tally: _Tally, sampler: Sampler, install_s: float
) -> ReplayReport:
    requests = len(tally.decision_s)
    p50, p99 = percentiles_us(tally.decision_s) or (0.0, 0.0)
    return ReplayReport(
        workload=workload.name,
        notes=workload.notes,
        hosts=len(workload.fleet.hosts),
        providers=len(workload.fleet.providers),
        requests=requests,
        placed=tally.placed,
        refused=requests - tally.placed,
        instances_placed=tally.instances_placed,
        instances_alive=len(tally.alive),
        refused_reasons=[
            RefusedReason(reason=reason, count=count, example=tally.examples[reason])
            for reason, count in tally.reasons.most_common()
        ],
        decision_us_p50=p50,
        decision_us_p99=p99,
        decisions_per_s=requests / tally.work_s if tally.work_s > 0 else 0.0,
        work_s=tally.work_s,
        install_s=install_s,
        classes=_classes(target, sampler, peaks=tally.peaks),
        gpu_fragmentation=sampler.gpu_fragmentation(),
        series=sampler.series(),
        host_use=sampler.host_use(),
    )


def _classes(target: ReplayTarget, sampler: Sampler, *, peaks: dict[str, int]) -> list[ClassUse]:
    uses: list[ClassUse] = []
    for resource_class, (used, capacity) in target.utilisation().items():
        piece = sampler.typical.get(resource_class)
        uses.append(
            ClassUse(
                resource_class=resource_class,
                capacity=capacity,
                used=used,
                peak=max(used, peaks.get(resource_class, 0)),
                typical=piece,
                stranded_share=None if piece is None else sampler.measure_stranding(resource_class),
            )
        )
    return uses
