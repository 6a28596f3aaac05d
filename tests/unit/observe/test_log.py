"""Events of the log, and their redirection."""

import pytest

from roost.errors import BuildFailed, StoreBroken
from roost.observe import log


def test_redirected_events_reach_the_listener_and_not_stderr(capfd):
    received = []
    with log.redirect_events(received.append):
        log.event("begun", host="h1")
        log.fault("order 1", KeyError("odd"))
    assert capfd.readouterr().err == ""
    log.event("over")
    assert [each["event"] for each in received] == ["begun", "fault"]
    assert received[0] == {"event": "begun", "host": "h1"}
    assert '"event":"over"' in capfd.readouterr().err


@pytest.mark.parametrize(
    ("error", "has_traceback"),
    [(KeyError("odd"), True), (StoreBroken("no space left"), False), (BuildFailed("no"), False)],
)
def test_fault_has_a_traceback_only_for_unexpected_errors(error, has_traceback):
    received = []
    with log.redirect_events(received.append):
        try:
            raise error
        except type(error) as raised:
            log.fault("order 1", raised)
    assert ("traceback" in received[0], received[0]["error"]) == (has_traceback, repr(error))
