"""The conductor thread: advances operations beside the thread that owns the columns."""

import os
from collections.abc import Iterable, Sequence
from socket import gethostname
from threading import Event, Thread

from roost.api.v1.host_uptime import down_time_of
from roost.conductor.jobs import Jobs
from roost.conductor.loop import Conductor, ConductorHooks
from roost.conductor.operation.step import Terms
from roost.errors import Unavailable
from roost.machine import SystemClock
from roost.model.settings.roost_settings import Settings
from roost.model.work.work_rows import OperationRow, Put
from roost.observe import log, work_metrics
from roost.placement.deciding_thread import Serving
from roost.placement.last_success import LastSuccess
from roost.ports import WorkReader
from roost.product import Roost
from roost.scheduler.query.pci_requests import PciAliases

# Seconds between polls for commits of other processes and for timeouts.
_POLL_S = 0.5


class ConductorThread:
    """A conductor and the periodic jobs, in one thread.

    Args:
        cells: cells to work for; None: all; empty: only periodic jobs.
        is_polled: whether agents poll this process.
        poll_s: seconds between polls of the database.
    """

    def __init__(self, *, cells: Sequence[str] | None = None, is_polled: bool = True, poll_s: float = _POLL_S) -> None:
        self._cells = cells
        self._is_polled = is_polled
        self._poll_s = poll_s
        self._is_stopped = False
        self._wakeup = Event()
        self._thread: Thread | None = None
        self.turns = LastSuccess()  # of complete turns

    def wake_for(self, work: Iterable[Put]) -> None:
        """Wake the thread if a commit has an operation without an owner. Safe in any thread."""
        if any(isinstance(put.row, OperationRow) and not (put.row.owner or put.row.outcome) for put in work):
            self._wakeup.set()

    def start(self, roost: Roost, serving: Serving) -> None:
        """Start the thread.

        Raises:
            Unavailable: the database cannot be read.
        """
        clock = SystemClock()
        reader: WorkReader = serving.run(lambda current: current.store.work_reader(clock))
        name = f"{gethostname()}:{os.getpid()}:{os.urandom(4).hex()}"
        product = ConductorHooks(
            decision=roost.decision,
            devices=lambda request: PciAliases(roost.settings.pci).requests(request),
            terms=lambda: operation_terms(roost.settings),
        )
        conductor = Conductor(name, cells=self._cells, serving=serving, reader=reader, product=product)
        jobs = Jobs(
            name,
            serving=serving,
            reader=reader,
            down_time_s=lambda: down_time_of(roost.settings),
            offload_s=lambda: roost.settings.conductor.shelved_offload_time_s,
            serves_agents=self._is_polled,
        )
        self._thread = Thread(
            target=self._work,
            args=(conductor, jobs, reader),
            kwargs={"is_alone": not serving.store.is_shared},
            name="conductor",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Start no further steps."""
        self._is_stopped = True
        self._wakeup.set()

    def join(self) -> None:
        """Stop, and wait for the thread."""
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def _work(self, conductor: Conductor, jobs: Jobs, reader: WorkReader, *, is_alone: bool) -> None:
        clock = SystemClock()
        try:
            while not self._is_stopped:
                self._wakeup.clear()
                begun_s = clock.elapsed_s()
                try:
                    if is_alone:
                        conductor.take_over()
                        is_alone = False
                    jobs.turn()
                    step_count = conductor.turn()
                    self.turns.note(None)
                    work_metrics.TURN_SECONDS.observe(clock.elapsed_s() - begun_s)
                    if self._cells != ():  # A server without a conductor runs only the periodic jobs.
                        work_metrics.LAST_TURN.set(clock.now_s())
                except Unavailable:  # The committing thread logs it.
                    step_count = 0
                except Exception as error:  # noqa: BLE001  # the thread must keep running
                    work_metrics.CONDUCTOR_FAULTS.inc()
                    log.fault("conductor", error)
                    step_count = 0
                if not step_count:
                    self._wakeup.wait(self._poll_s)
        finally:
            reader.close()


def operation_terms(settings: Settings) -> Terms:
    """Return the limits of operations from the settings."""
    section = settings.conductor
    return Terms(
        attempts_max=settings.scheduler.max_attempts,
        build_timeout_s=section.build_timeout_s,
        act_timeout_s=section.act_timeout_s,
        owner_s=section.owner_s,
        shelved_offload_time_s=section.shelved_offload_time_s,
        failed_builds_max=section.consecutive_build_service_disable_threshold,
    )
