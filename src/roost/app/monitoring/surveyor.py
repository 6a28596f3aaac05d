"""Surveys of the fleet and of the database, for metrics: a thread beside the one that decides.

It reads the columns without a lock, in chunks, and the database on a connection of its own. So it stops no decision. A
survey that takes long is repeated less often.
"""

import time
from collections.abc import Callable, Sequence
from threading import Event, Thread

from roost.app.monitoring.samples import database_samples, survey_fleet
from roost.errors import RoostError
from roost.machine import SystemClock
from roost.model.settings.roost_settings import Settings
from roost.observe import fleet_metrics as families
from roost.observe import log, metrics
from roost.observe.exposition import board
from roost.observe.survey_board import Sample, SurveyBoard, sample
from roost.placement.deciding_thread import Serving
from roost.store.upkeep.row_counts import count_database, count_evidence

# A survey uses at most this share of one processor; the interval grows if necessary.
_SHARE_MAX = 0.05
# The same for the count of evidence, which reads a whole table.
_EVIDENCE_SHARE_MAX = 0.005
_EVIDENCE_INTERVAL_S = 60.0


class Surveyor:
    """Surveys in a thread, and publishes the results as metrics.

    Args:
        serving: owner of the columns.
        settings: the current settings.
        database: URL or path; None: the database is in memory, and is not counted.
        down_time_s: seconds of silence after which a host is down.
    """

    def __init__(
        self,
        serving: Serving,
        *,
        settings: Callable[[], Settings],
        database: str | None,
        down_time_s: Callable[[], float],
    ) -> None:
        self._serving, self._settings, self._database = serving, settings, database
        self._down_time_s = down_time_s
        self._board: SurveyBoard = board()
        self._is_stopped = Event()
        self._evidence: Sequence[Sample] = ()
        self._evidence_at_s = 0.0
        self._thread = Thread(target=self._work, name="surveys", daemon=True)

    def start(self) -> None:
        """Start the thread, and show the versions of this process."""
        metrics.set_build_info()
        self._thread.start()

    def join(self) -> None:
        """Stop, and wait for the thread."""
        self._is_stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        surveys = {"fleet": self._survey_fleet}
        if self._database is not None:
            surveys["database"] = self._survey_database
        due_s = dict.fromkeys(surveys, 0.0)
        while not self._is_stopped.is_set():
            interval_s = self._settings().monitoring.survey_interval_s
            for name, survey in surveys.items():
                if interval_s and time.monotonic() >= due_s[name]:
                    due_s[name] = time.monotonic() + max(interval_s, self._run(name, survey) / _SHARE_MAX)
            self._is_stopped.wait(min(1.0, interval_s or 1.0))

    def _run(self, name: str, survey: Callable[[], Sequence[Sample]]) -> float:
        """Run one survey unless another process just did; return its seconds of work."""
        if self._board.is_recent(name, age_s=0.9 * self._settings().monitoring.survey_interval_s):
            return 0.0
        begun_s = time.perf_counter()
        try:
            samples = survey()
        except RoostError:  # The deciding thread logs the failures of the database.
            return 0.0
        except (RuntimeError, LookupError, ValueError):
            # The columns grew or shrank during the survey; the next survey sees all of it.
            return 0.0
        except Exception as error:  # noqa: BLE001  # the thread must keep running
            log.fault(f"survey {name}", error)
            return 0.0
        elapsed_s = time.perf_counter() - begun_s
        self._board.publish(
            name,
            [
                *samples,
                sample(families.SURVEY_TIME, name, value=time.time()),
                sample(families.SURVEY_SECONDS, name, value=elapsed_s),
            ],
        )
        return elapsed_s

    def _survey_fleet(self) -> Sequence[Sample]:
        settings, now_s = self._settings(), SystemClock().now_s()
        return survey_fleet(
            self._serving.state,
            limits=settings.monitoring,
            default_zone=settings.default.default_availability_zone,
            now_s=now_s,
            down_time_s=self._down_time_s(),
        )

    def _survey_database(self) -> Sequence[Sample]:
        assert self._database is not None, "a database in memory is not counted"
        now_s = time.time()
        counts = count_database(self._database, contact_since_s=now_s - self._down_time_s())
        if time.monotonic() >= self._evidence_at_s:
            begun_s = time.monotonic()
            rows, size = count_evidence(self._database)
            elapsed_s = time.monotonic() - begun_s
            self._evidence_at_s = begun_s + max(_EVIDENCE_INTERVAL_S, elapsed_s / _EVIDENCE_SHARE_MAX)
            self._evidence = (
                sample(families.EVIDENCE_ROWS, value=rows),
                sample(families.EVIDENCE_BYTES, value=size),
            )
        return [*database_samples(counts, now_s=now_s), *self._evidence]
