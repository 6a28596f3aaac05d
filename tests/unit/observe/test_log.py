"""The log: who is told of events."""

import pytest

from roost.errors import BuildFailed, StoreBroken
from roost.observe import log


def test_who_listens_is_told_and_nothing_is_written_meanwhile(capfd):
    heard = []
    with log.redirect_events(heard.append):
        log.event("begun", host="h1")
        log.fault("order 1", KeyError("odd"))
    assert capfd.readouterr().err == ""
    log.event("over")
    assert [each["event"] for each in heard] == ["begun", "fault"]
    assert heard[0] == {"event": "begun", "host": "h1"}
    assert '"event":"over"' in capfd.readouterr().err


@pytest.mark.parametrize(
    ("error", "is_told_where"),
    [(KeyError("odd"), True), (StoreBroken("no space left"), False), (BuildFailed("no"), False)],
)
def test_it_is_told_where_an_error_came_from_unless_its_message_says_what_to_mend(error, is_told_where):
    heard = []
    with log.redirect_events(heard.append):
        try:
            raise error
        except type(error) as raised:
            log.fault("order 1", raised)
    assert ("traceback" in heard[0], heard[0]["error"]) == (is_told_where, repr(error))
