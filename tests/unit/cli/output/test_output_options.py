"""The options of output, on a database and on a server."""

import csv
import io
import json
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest
import yaml

from roost import app
from roost.app import open_roost
from roost.cli.output import output_options
from tests.support.fleets.products import command, environ
from tests.support.servers.scripted_server import scripted_server

AGENT = {
    "host": "host-1",
    "state": "ready",
    "up": True,
    "heard_at_s": 0.5,
    "driver": "fake",
    "cell": "",
    "nodes": ["host-1"],
}


@pytest.fixture
def listed(tmp_path, run):
    """Return a function that lists three flavors with some options, and returns the output."""
    with open_roost(None, tmp_path):
        pass
    for name, vcpus in (("f-10", 2), ("f-9", 4), ("größe \u202e", 8)):
        assert run("flavor", "set", name, "--vcpus", vcpus, "--data", tmp_path)[0] == 0

    def listed(*words, code=0):
        result = run("flavor", "list", *words, "--data", tmp_path)
        assert result[0] == code, result
        return result[1] if code == 0 else result[2]

    return listed


def test_json_is_the_same_under_both_names(listed):
    assert listed("--json") == listed("-o", "json") == listed("--output", "json", "--json")
    assert [each["name"] for each in json.loads(listed("--json"))] == ["f-9", "f-10", "größe \u202e"]


def test_yaml_has_the_content_of_json_and_no_unprintable_letters(listed):
    text = listed("-o", "yaml")
    assert yaml.safe_load(text) == json.loads(listed("--json"))
    assert text.replace("\n", "").isprintable()


def test_csv_has_the_chosen_columns(listed):
    rows = list(csv.DictReader(io.StringIO(listed("-o", "csv", "--columns", "vcpus,name", "--sort", "name"))))
    assert rows[:2] == [{"vcpus": "4", "name": "f-9"}, {"vcpus": "2", "name": "f-10"}]


@pytest.mark.parametrize("form", ["table", "json", "yaml", "csv"])
def test_limit_and_sort_apply_to_each_form(listed, form):
    text = listed("-o", form, "--sort", "-vcpus", "--limit", "1")
    assert "größe" in text or "gr\\xF6\\xDFe" in text
    assert "f-9" not in text


def test_columns_select_the_members_of_json(listed):
    assert json.loads(listed("--json", "--columns", "name,vcpus", "--limit", "1")) == [{"name": "f-9", "vcpus": 4}]


@pytest.mark.usefixtures("listed")
def test_limited_table_says_that_more_rows_exist(run, tmp_path):
    assert run("flavor", "list", "--limit", "2", "--data", tmp_path)[2] == (
        "more flavors exist; raise --limit to see them\n"
    )
    assert run("flavor", "list", "--limit", "3", "--data", tmp_path)[2] == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--columns", "vcpux"], "no column is called 'vcpux', did you mean 'vcpus'?"),
        (["--sort", "-size"], "no column is called 'size'; use name, vcpus, memory_mb"),
        (["-o", "xml"], "'xml' is not one of"),
        (["-o", "yaml", "--json"], "the output cannot be both json and yaml"),
        (["--limit", "0"], "'--limit'"),
        (["--watch", "0"], "'--watch'"),
        (["--watch", "inf"], "'--watch'"),
        (["--watch", "nan"], "'nan' is not a number of seconds"),
    ],
)
def test_wrong_option_is_refused_before_a_request(run, words, sentence):
    with scripted_server() as (address, requests):
        code, output, error = run("flavor", "list", *words, "--url", address)
    assert (code, output, sentence in error, requests) == (2, "", True, []), error


def test_limit_requests_no_more_pages_than_it_needs(run):
    one = {"name": "one", "uuid": "1", "availability_zone": None, "hosts": [], "metadata": {}}
    page = {"aggregates": [one, {**one, "name": "two"}], "next": "2"}
    with scripted_server((200, page)) as (address, requests):
        assert run("aggregate", "list", "--limit", "1", "--url", address)[0] == 0
        assert len(requests) == 1


def test_times_are_ages_in_tables_and_text_beside_the_number_in_json(run):
    page = (200, {"agents": [AGENT], "next": None})
    with scripted_server(page, page, page) as (address, _):
        assert " y ago" in run("agent", "list", "--url", address)[1]
        assert "1970-01-01 00:00:00Z" in run("agent", "list", "-o", "wide", "--url", address)[1]
        (agent,) = json.loads(run("agent", "list", "--json", "--url", address)[1])
    assert (agent["heard_at_s"], agent["heard_at"]) == (0.5, "1970-01-01T00:00:00Z")


@pytest.mark.usefixtures("listed")
def test_watch_repeats_until_it_is_interrupted(tmp_path):
    words = command("flavor", "list", "--watch", "0.1", "--columns", "name", "--data", ".")
    with subprocess.Popen(words, cwd=tmp_path, env=environ(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(11)]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    assert lines[:5] == lines[5:10] == ["name\n", "f-9\n", "f-10\n", "größe \\u202e\n", "\n"]


@pytest.fixture
def two_repetitions(monkeypatch):
    """Interrupt ``--watch`` after two repetitions."""
    pauses = iter([None])

    def sleep(_seconds):
        if next(pauses, "the end") is not None:
            raise KeyboardInterrupt

    monkeypatch.setattr(output_options, "time", SimpleNamespace(sleep=sleep, time=time.time))


@pytest.mark.usefixtures("listed", "two_repetitions")
def test_watch_of_yaml_prints_one_document_per_repetition(run, tmp_path):
    code, output, _ = run("flavor", "list", "--watch", "1", "-o", "yaml", "--columns", "vcpus", "--data", tmp_path)
    assert (code, list(yaml.safe_load_all(output))) == (130, [[{"vcpus": 4}, {"vcpus": 2}, {"vcpus": 8}]] * 2)


@pytest.mark.usefixtures("listed", "two_repetitions")
@pytest.mark.parametrize("words", [("list",), ("show", "f-9")], ids=" ".join)
def test_watch_opens_the_database_once(run, tmp_path, monkeypatch, words):
    opened, open_own_api = [], app.open_own_api

    def count_and_open(*arguments, **more):
        opened.append(arguments)
        return open_own_api(*arguments, **more)

    monkeypatch.setattr(app, "open_own_api", count_and_open)
    code, output, _ = run("flavor", *words, "--watch", "1", "--data", tmp_path)
    assert (code, output.count("f-9"), len(opened)) == (130, 2, 1)


def test_watch_survives_a_restart_of_the_server(tmp_path):
    page = (200, {"agents": [AGENT], "next": None})
    with scripted_server(page, None, page) as (address, _):
        words = command("agent", "list", "--watch", "0.1", "--columns", "host", "--url", address)
        with subprocess.Popen(
            words, cwd=tmp_path, env=environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert "does not answer" in process.stderr.readline()
            lines = [process.stdout.readline() for _ in range(6)]
            process.kill()
    assert [line.strip() for line in lines if line.strip()] == ["host", "host-1", "host", "host-1"]
