"""Where commands ask, and what they make of answers that are none of Roost's."""

import pytest

from roost.cli.backend import Api
from roost.cli.instance.wait import wait_for_operation
from tests.support.servers.scripted_server import scripted

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
def nowhere(monkeypatch):
    """Let nothing but the words say who asks and where."""
    monkeypatch.delenv("ROOST_URL", raising=False)
    monkeypatch.delenv("ROOST_TOKEN", raising=False)


def refused(run, *words):
    """Give what a command says that is not obeyed."""
    code, said, problem = run(*words)
    assert (code, said, "Traceback" in problem) == (2, "", False)
    return problem


@pytest.mark.parametrize("command", [("agent", "list"), ("events",)], ids=lambda command: command[0])
@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_that_is_none_is_refused_in_one_sentence(run, command, url):
    problem = refused(run, *command, "--url", url)
    assert problem == f"roost: --url must be http://HOST:PORT or https://HOST:PORT, got {url!r}\n"


@pytest.mark.parametrize("command", [("agent", "list"), ("events",)], ids=lambda command: command[0])
@pytest.mark.parametrize("token", [SECRET, "ä€"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(run, command, token):
    problem = refused(run, *command, "--token", token)
    assert problem == "roost: --token has a character that no header can hold, such as a line break\n"


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
def test_an_empty_name_is_refused_before_anything_is_asked(run, words):
    with scripted() as (address, asked):
        assert "must not be empty" in refused(run, *words, "--url", address)
    assert asked == []


@pytest.mark.parametrize(
    ("answer", "code", "sentence"),
    [
        ((200, []), 2, "the server is not Roost: its answer has no agents"),
        ((200, {"name": 1}), 2, "the server is not Roost: its answer has no agents"),
        ((200, b"<html>"), 2, "the server is not Roost: status 200, and the body is not JSON"),
        ((404, {"errors": []}), 4, "status 404 without a reason: is the server Roost?"),
    ],
)
def test_what_is_not_roost_is_said_to_be_that(run, answer, code, sentence):
    with scripted(answer) as (address, _):
        assert run("agent", "list", "--url", address) == (code, "", f"roost: {sentence}\n")


def test_events_of_what_tells_none_are_not_waited_for(run):
    with scripted((200, b"<html>")) as (address, _):
        code, said, problem = run("events", "--url", address)
    assert (code, said) == (1, "")
    assert problem == f"roost: {address} is not a Roost server: it has no events\n"


@pytest.mark.parametrize("answers", [0, 1])
@pytest.mark.parametrize("words", [("instance", "stop", GUEST, "--wait"), ("host", "drain", "host-1")], ids=" ".join)
def test_who_waits_is_told_that_the_operation_is_not_lost_with_its_server(run, words, answers):
    operation = {"uuid": GUEST, "operation": GUEST, "outcome": "open", "instances": [], "story": []}
    with scripted((202, operation), *[(200, operation)] * answers, None) as (address, _):
        code, said, problem = run(*words, "--url", address)
    assert (code, said) == (7, "")
    assert problem.strip().endswith(f"; the operation {GUEST} continues when a server is back")


def test_who_is_interrupted_while_waiting_is_told_which_operation_goes_on(capsys):
    def way(_method, _path, _body):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wait_for_operation(Api(way), GUEST)
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
def test_a_name_in_another_encoding_is_refused_before_anything_is_asked(run, words):
    with scripted() as (address, asked):
        assert "gr\\udcf6n" in refused(run, *words, "--url", address)
    assert not asked
