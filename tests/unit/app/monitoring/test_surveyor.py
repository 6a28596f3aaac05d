"""The thread of surveys: failures, repetitions and its end."""

import threading
import time
from types import SimpleNamespace

import pytest

from roost.app.monitoring import surveyor as surveys
from roost.app.monitoring.surveyor import Surveyor
from roost.engine.columns.state import State
from roost.errors import StoreGone
from roost.model.settings.monitoring_settings import Monitoring
from roost.model.settings.roost_settings import Settings
from roost.observe import log
from roost.observe.survey_board import SurveyBoard
from tests.support.wait import wait_until


@pytest.fixture
def board(monkeypatch):
    """Return the board of the surveyor: results by survey."""
    found = SurveyBoard()
    monkeypatch.setattr(surveys, "board", lambda: found)
    return found


@pytest.fixture
def faults():
    """Return the list of logged errors."""
    received = []
    with log.redirect_events(received.append):
        yield received


@pytest.fixture
def start():
    """Return a function that starts a surveyor, which ends with the test."""
    started = []

    def start(database):
        settings = Settings(monitoring=Monitoring(survey_interval_s=0.05))
        serving = SimpleNamespace(state=State())
        started.append(Surveyor(serving, settings=lambda: settings, database=database, down_time_s=lambda: 60.0))
        started[-1].start()
        return started[-1]

    yield start
    for each in started:
        each.join()


def times(board):
    """Return the names of the surveys that have succeeded."""
    name = "roost_survey_timestamp_seconds"
    return {each.labels["survey"] for metric in board.collect() for each in metric.samples if each.name == name}


def test_failed_count_of_evidence_leaves_the_other_surveys(board, faults, start, monkeypatch):
    monkeypatch.setattr(surveys, "count_database", lambda *_, **__: None)
    monkeypatch.setattr(surveys, "database_samples", lambda *_, **__: [])
    calls = []

    def fail(_):
        calls.append(time.monotonic())
        raise StoreGone("too slow")

    monkeypatch.setattr(surveys, "count_evidence", fail)
    start("roost.db")
    assert wait_until(lambda: times(board) == {"fleet", "database"})
    time.sleep(0.2)
    assert (len(calls), faults) == (1, [])  # It waits a minute, also after a failure.


def test_survey_that_always_fails_is_logged(board, faults, start, monkeypatch):
    def fail(*_, **__):
        raise IndexError("the columns shrank")

    monkeypatch.setattr(surveys, "survey_fleet", fail)
    start(None)
    assert wait_until(lambda: bool(faults))
    assert (faults[0]["request_id"], times(board)) == ("survey fleet", set())


def test_end_waits_a_second_at_most_for_a_survey(board, start, monkeypatch):  # noqa: ARG001
    monkeypatch.setattr(surveys, "_STOP_S", 0.05)
    begun, release = threading.Event(), threading.Event()

    def hang(*_, **__):
        begun.set()
        release.wait(30)
        return []

    monkeypatch.setattr(surveys, "survey_fleet", hang)
    surveyor = start(None)
    assert begun.wait(10)
    surveyor.join()
    assert not release.is_set()
    release.set()
