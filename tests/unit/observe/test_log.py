"""The log: who is told of events."""

from roost.observe import log


def test_who_listens_is_told_and_nothing_is_written_meanwhile(capfd):
    heard = []
    with log.told_to(heard.append):
        log.event("begun", host="h1")
        log.fault("order 1", KeyError("odd"))
    assert capfd.readouterr().err == ""
    log.event("over")
    assert [each["event"] for each in heard] == ["begun", "fault"]
    assert heard[0] == {"event": "begun", "host": "h1"}
    assert '"event":"over"' in capfd.readouterr().err
