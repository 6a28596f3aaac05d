"""Events of the log: redirection, formats, levels and repetitions."""

import io
import json
import logging
import os
import re
import time

import pytest

from roost.errors import BuildFailed, StoreBroken
from roost.model.settings.log_settings import Log
from roost.observe import log, log_writer
from roost.observe.log_lines import Line, as_json, as_text
from roost.observe.log_writer import LogWriter


def configure(**settings):
    """Configure the log until the end of the test."""
    log.configure(Log(**settings))


@pytest.fixture
def lines(capfd):
    """Return a function that returns the JSON lines since its last call."""
    return lambda: [json.loads(line) for line in capfd.readouterr().err.splitlines()]


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


def test_line_has_time_level_and_the_calling_module(lines):
    log.event("tokens_kept", problem="odd")
    (line,) = lines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {"level": "warning", "logger": __name__, "event": "tokens_kept", "problem": "odd"}


def test_lines_below_the_level_are_not_written(lines):
    configure(level="warning")
    log.event("tokens_read")
    log.event("tokens_kept", problem="odd")
    log.write("plugin_log", {"message": "m"}, level="debug", logger="acme")
    assert [line["event"] for line in lines()] == ["tokens_kept"]


def test_repetitions_of_a_problem_are_counted_and_reported(lines, monkeypatch):
    now_s = 1000.0
    monkeypatch.setattr(log.time, "time", lambda: now_s)
    configure(repeat_s=10)
    for number in range(5):
        log.event("database_fails", problem="gone", request_id=f"req-{number}")
    log.event("database_fails", problem="other")
    log.event("tokens_read")
    log.event("tokens_read")
    assert [(line["event"], line.get("problem")) for line in lines()] == [
        ("database_fails", "gone"),
        ("database_fails", "other"),
        ("tokens_read", None),
        ("tokens_read", None),
    ]
    now_s = 1011.0
    log.event("database_fails", problem="gone")
    assert [(line["problem"], line["repeated"]) for line in lines()] == [("gone", 4)]
    log.event("database_fails", problem="gone")
    now_s = 1030.0
    log.write_repetitions()
    log.write_repetitions()
    assert [(line["problem"], line["repeated"]) for line in lines()] == [("gone", 1)]


def test_text_line_quotes_values_and_indents_tracebacks():
    fields = {"host": "h1", "reason": "bad disk", "none": None, "up": True, "traceback": "Traceback:\n  x\x1b[2J\n"}
    line = Line(time_s=0.5, level="warning", logger="roost.x", event="fault", fields=fields)
    assert as_text(line).decode().splitlines() == [
        '1970-01-01T00:00:00.500Z WARNING roost.x fault host=h1 reason="bad disk" up=true',
        "    | Traceback:",
        r"    |   x\u001b[2J",
    ]


@pytest.mark.parametrize("value", ["a\nb", "a\x1b[31mb", "a\u202eb", 'a="b"', "a\x9bb", "\ud800"])
def test_values_cannot_imitate_lines_or_control_a_terminal(value):
    line = Line(time_s=0.0, level="info", logger="l", event="e", fields={"v": value})
    encoded = as_text(line)
    text = encoded.decode()
    assert text.count("\n") == 1
    assert text[:-1].isprintable()
    assert json.loads(text.split(" v=")[1]) == value


def test_json_line_holds_any_text():
    line = Line(time_s=0.0, level="info", logger="l", event="e", fields={"v": "a\nb", "w": "\ud800"})
    assert as_json(line).count(b"\n") == 1


def test_auto_format_is_text_on_a_terminal(monkeypatch, capfd):
    configure()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    log.event("tokens_read")
    configure(format="json")
    log.event("tokens_read")
    text, encoded = capfd.readouterr().err.splitlines()
    assert text.endswith(f"INFO    {__name__} tokens_read")
    assert json.loads(encoded)["event"] == "tokens_read"


def test_python_logging_of_roost_is_forwarded(lines):
    configure()
    logging.getLogger("roost.compat.example").warning("%d values", 2)
    (line,) = lines()
    assert (line["event"], line["logger"], line["level"], line["message"]) == (
        "python_log",
        "roost.compat.example",
        "warning",
        "2 values",
    )


def test_traceback_of_python_logging_is_a_field(lines):
    configure()
    logging.getLogger("roost.compat.example").error("a rule failed", exc_info=KeyError("odd"))
    (line,) = lines()
    assert (line["level"], line["message"]) == ("error", "a rule failed")
    assert line["traceback"].endswith("KeyError: 'odd'\n")


def test_problems_are_written_after_the_clock_was_set_back(lines, monkeypatch):
    now_s = 5000.0
    monkeypatch.setattr(log.time, "time", lambda: now_s)
    configure(repeat_s=10)
    log.event("database_fails", problem="odd clock")
    log.event("database_fails", problem="odd clock")
    now_s = 1000.0
    log.event("database_fails", problem="odd clock")
    assert [line.get("repeated") for line in lines()] == [None, 1]


def test_background_writer_keeps_the_order_and_writes_all_before_its_end(lines):
    configure()
    with log.write_in_background():
        for number in range(1000):
            log.event("tokens_read", number=number)
    log.event("tokens_read", number=1000)
    assert [line["number"] for line in lines()] == [*range(1001)]


def test_full_log_drops_lines_and_reports_their_number(monkeypatch):
    monkeypatch.setattr(log_writer, "_LINES_MAX", 5)
    reader, descriptor = os.pipe()
    try:
        os.set_blocking(descriptor, True)
        writer = LogWriter(descriptor, report_drops=lambda count: writer.put(b"dropped %d\n" % count))
        writer.put(bytes(1_000_000) + b"\n")  # more than a pipe holds: the thread waits for the reader
        while writer._lines.qsize():
            time.sleep(0.001)
        for number in range(8):
            writer.put(b"%d\n" % number)
        rows = io.BufferedReader(io.FileIO(reader, closefd=False))
        assert [rows.readline().lstrip(b"\0").decode() for _ in range(7)] == [
            "\n",
            *(f"{number}\n" for number in range(5)),
            "dropped 3\n",
        ]
        writer.put(b"last\n")
        writer.stop()
        assert rows.readline() == b"last\n"
    finally:
        os.close(reader)
        os.close(descriptor)
