"""Surveys of the fleet and of the database, for metrics and the history: a thread beside the one that decides.

It reads the columns without a lock, in chunks, and the database on a connection of its own. So it stops no decision. A
survey that takes long is repeated less often, also if it fails.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, Thread

from roost.app.monitoring.history_writer import HistoryWriter
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

# Seconds that a stop waits for a survey: the thread is a daemon, so it ends with the process.
_STOP_S = 1.0
# Consecutive surveys that a change of the columns may disturb before the error is logged.
_DISTURBED_MAX = 3


@dataclass(slots=True, kw_only=True)
class _Survey:
    """A repeated survey.

    Args:
        take: returns its results.
        share_max: maximum share of one processor; the interval grows if necessary.
        interval_min_s: minimum seconds between two of them.
        reads_columns: whether a concurrent change of the columns can disturb it.
    """

    take: Callable[[], Sequence[Sample]]
    share_max: float = 0.05
    interval_min_s: float = 0.0
    reads_columns: bool = False
    due_s: float = 0.0
    disturbed: int = 0  # consecutive times


class Surveyor:
    """Surveys in a thread, and publishes the results as metrics.

    Args:
        serving: owner of the columns.
        settings: the current settings.
        database: URL or path; None: the database is in memory, and is not counted.
        down_time_s: seconds of silence after which a host is down.
        history: writes the history of the fleet; None: nothing does.
    """

    def __init__(
        self,
        serving: Serving,
        *,
        settings: Callable[[], Settings],
        database: str | None,
        down_time_s: Callable[[], float],
        history: HistoryWriter | None = None,
    ) -> None:
        self._serving, self._settings, self._database = serving, settings, database
        self._down_time_s, self._history = down_time_s, history
        self._board: SurveyBoard = board()
        self._is_stopped = Event()
        self._thread = Thread(target=self._work, name="surveys", daemon=True)

    def start(self) -> None:
        """Start the thread, and show the versions of this process."""
        metrics.set_build_info()
        self._thread.start()

    def join(self) -> None:
        """Stop, and wait for the thread, a second at most."""
        self._is_stopped.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def _work(self) -> None:
        surveys = {"fleet": _Survey(take=self._survey_fleet, reads_columns=True)}
        if self._database is not None:
            surveys["database"] = _Survey(take=self._survey_database)
            # It reads a whole table.
            surveys["evidence"] = _Survey(take=self._survey_evidence, share_max=0.005, interval_min_s=60.0)
        while not self._is_stopped.is_set():
            interval_s = self._settings().monitoring.survey_interval_s
            for name, survey in surveys.items():
                if interval_s and time.monotonic() >= survey.due_s and not self._is_stopped.is_set():
                    self._repeat(name, survey, interval_s=max(interval_s, survey.interval_min_s))
            self._write_history()
            self._is_stopped.wait(min(1.0, interval_s or 1.0))
        self._write_history(is_end=True)

    def _write_history(self, *, is_end: bool = False) -> None:
        try:
            if self._history is not None:
                self._history.write(now_s=time.time(), is_end=is_end)
        except RoostError:  # The deciding thread logs the failures of the database.
            return
        except Exception as error:  # noqa: BLE001  # the thread must keep running
            log.fault("history", error)

    def _repeat(self, name: str, survey: _Survey, *, interval_s: float) -> None:
        """Take one survey unless another process just did, and publish the results."""
        begun_s = time.monotonic()
        if not self._board.is_recent(name, age_s=0.9 * interval_s):
            samples = self._take(name, survey)
            if samples is not None:
                self._board.publish(
                    name,
                    [
                        *samples,
                        sample(families.SURVEY_TIME, name, value=time.time()),
                        sample(families.SURVEY_SECONDS, name, value=time.monotonic() - begun_s),
                    ],
                )
        survey.due_s = begun_s + max(interval_s, (time.monotonic() - begun_s) / survey.share_max)

    def _take(self, name: str, survey: _Survey) -> Sequence[Sample] | None:
        """Return the results of a survey; None: it failed."""
        try:
            samples = survey.take()
        except RoostError:  # The deciding thread logs the failures of the database.
            return None
        except Exception as error:  # noqa: BLE001  # the thread must keep running
            # The columns may grow or shrink during the survey; the next survey sees all of it.
            is_race = survey.reads_columns and isinstance(error, RuntimeError | LookupError | ValueError)
            survey.disturbed = survey.disturbed + 1 if is_race else _DISTURBED_MAX
            if survey.disturbed >= _DISTURBED_MAX:
                log.fault(f"survey {name}", error)
            return None
        survey.disturbed = 0
        return samples

    def _survey_fleet(self) -> Sequence[Sample]:
        settings, now_s = self._settings(), SystemClock().now_s()
        samples = survey_fleet(
            self._serving.state,
            limits=settings.monitoring,
            default_zone=settings.default.default_availability_zone,
            now_s=now_s,
            down_time_s=self._down_time_s(),
        )
        if self._history is not None:
            self._history.keep(samples)
        return samples

    def _survey_database(self) -> Sequence[Sample]:
        assert self._database is not None, "a database in memory is not counted"
        now_s = time.time()
        counts = count_database(self._database, contact_since_s=now_s - self._down_time_s())
        return [*database_samples(counts, now_s=now_s)]

    def _survey_evidence(self) -> Sequence[Sample]:
        assert self._database is not None, "a database in memory is not counted"
        rows, size = count_evidence(self._database)
        return [sample(families.EVIDENCE_ROWS, value=rows), sample(families.EVIDENCE_BYTES, value=size)]
