"""Addresses and tokens of commands, and answers of servers that are not Roost."""

import pytest

from roost.cli.backend import Api
from roost.cli.instance.wait import wait_for_operation
from tests.support.servers.scripted_server import scripted_server

ADDRESSES = (
    "http://h:99999",
    "http://h:x",
    "http://a b/",
    "http://a..b",
    "http://h/a b",
    "http://h/ä",
    "foo",
    "http://",
)
GUEST = "c0ffee00-0000-4000-8000-000000000001"
SECRET = "a secret\nof somebody"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    """Remove the address and the token from the environment."""
    monkeypatch.delenv("ROOST_URL", raising=False)
    monkeypatch.delenv("ROOST_TOKEN", raising=False)


def refusal(run, *words):
    """Run a command that is refused; return its error."""
    code, output, problem = run(*words)
    assert (code, output, "Traceback" in problem) == (2, "", False)
    return problem


@pytest.mark.parametrize("command", [("agent", "list"), ("events",)], ids=lambda command: command[0])
@pytest.mark.parametrize("url", ADDRESSES)
def test_invalid_address_is_refused_in_one_sentence(run, command, url):
    problem = refusal(run, *command, "--url", url)
    assert problem == f"roost: --url must be http://HOST:PORT or https://HOST:PORT, got {url!r}\n"


@pytest.mark.parametrize("command", [("agent", "list"), ("events",)], ids=lambda command: command[0])
@pytest.mark.parametrize("token", [SECRET, "ä€"])
def test_token_invalid_in_a_header_is_refused_and_not_shown(run, command, token):
    problem = refusal(run, *command, "--token", token)
    assert problem == "roost: --token has a character that a header cannot contain, such as a line break\n"


@pytest.mark.parametrize(
    "words",
    [
        ("instance", "delete", ""),
        ("instance", "show", ""),
        ("instance", "evacuate", "--host", ""),
        ("instance", "list", "--name", ""),
        ("migration", "list", "--instance", ""),
        ("migration", "show", ""),
        ("agent", "show", ""),
        ("host", "drain", ""),
    ],
    ids=" ".join,
)
def test_empty_name_is_refused_before_any_request(run, words):
    with scripted_server() as (address, requests):
        assert "must not be empty" in refusal(run, *words, "--url", address)
    assert requests == []


@pytest.mark.parametrize(
    ("answer", "code", "sentence"),
    [
        ((200, []), 2, "the server is not Roost: its answer has no agents"),
        ((200, {"name": 1}), 2, "the server is not Roost: its answer has no agents"),
        ((200, b"<html>"), 2, "the server is not Roost: status 200, and the body is not JSON"),
        ((404, {"errors": []}), 4, "status 404 without a reason: is the server Roost?"),
    ],
)
def test_server_that_is_not_roost_is_a_clear_error(run, answer, code, sentence):
    with scripted_server(answer) as (address, _):
        assert run("agent", "list", "--url", address) == (code, "", f"roost: {sentence}\n")


def test_events_of_a_foreign_server_are_not_awaited(run):
    with scripted_server((200, b"<html>")) as (address, _):
        code, output, problem = run("events", "--url", address)
    assert (code, output) == (1, "")
    assert problem == f"roost: {address} is not a Roost server: it has no events\n"


@pytest.mark.parametrize("answers", [0, 1])
@pytest.mark.parametrize("words", [("instance", "stop", GUEST, "--wait"), ("host", "drain", "host-1")], ids=" ".join)
def test_wait_reports_that_the_operation_outlives_its_server(run, words, answers):
    operation = {"uuid": GUEST, "operation": GUEST, "outcome": "open", "instances": [], "story": []}
    with scripted_server((202, operation), *[(200, operation)] * answers, None) as (address, _):
        code, output, problem = run(*words, "--url", address)
    assert (code, output) == (7, "")
    assert problem.strip().endswith(f"; the operation {GUEST} continues when a server is back")


def test_interrupted_wait_names_the_continuing_operation(capsys):
    def send(_method, _path, _body):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wait_for_operation(Api(send), GUEST)
    assert capsys.readouterr().err == f"\nroost: the operation {GUEST} continues\n"


@pytest.mark.parametrize(
    "words",
    [
        ("instance", "create", "gr\udcf6n", "--flavor", "vcpus=1"),
        ("instance", "show", "gr\udcf6n"),
        ("instance", "list", "--name", "gr\udcf6n"),
        ("agent", "show", "gr\udcf6n"),
        ("events", "--instance", "gr\udcf6n"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_name_in_another_encoding_is_refused_before_any_request(run, words):
    with scripted_server() as (address, requests):
        assert "gr\\udcf6n" in refusal(run, *words, "--url", address)
    assert not requests
