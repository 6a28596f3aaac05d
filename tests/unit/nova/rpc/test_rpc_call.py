"""One call, and its only answer."""

import json
import threading

import pytest

from roost.nova.rpc.envelope import decode
from roost.nova.rpc.rpc_call import Call
from roost.nova.rpc.rpc_failure import build_failure
from roost.observe import log


@pytest.fixture
def sent():
    return []


@pytest.fixture
def build(sent):
    """Return a function that builds a call; its replies are in ``sent``."""

    def build(**inner):
        text = json.dumps({"method": "run", "args": {"password": "hunter2"}, **inner})
        message = decode(json.dumps({"oslo.version": "2.0", "oslo.message": text}).encode())
        return Call(message, lambda _, reply, has_failed: sent.append((reply, has_failed)))

    return build


def reply_of(body):
    return json.loads(json.loads(body)["oslo.message"])


def test_answer_is_sent_once(build, sent):
    call = build(_msg_id="m", _reply_q="q")
    events = []
    with log.redirect_events(events.append):
        call.answer(1)
        call.answer(2)
        call.fail(build_failure("X", "y", "z"))
    ((body, has_failed),) = sent
    assert reply_of(body)["result"] == 1
    assert not has_failed
    assert [event["event"] for event in events] == ["rpc_answer_ignored"] * 2


def test_only_one_of_many_threads_answers(build, sent):
    call = build(_msg_id="m", _reply_q="q")
    with log.redirect_events(lambda _: None):
        threads = [threading.Thread(target=call.answer, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(sent) == 1


def test_answer_without_a_form_in_json_is_an_internal_error(build, sent):
    with log.redirect_events(lambda _: None):
        build(_msg_id="m", _reply_q="q").answer(object())
    ((body, has_failed),) = sent
    assert json.loads(reply_of(body)["failure"])["class"] == "RuntimeError"
    assert has_failed


def test_failure_without_a_form_in_json_is_an_internal_error(build, sent):
    with log.redirect_events(lambda _: None):
        build(_msg_id="m", _reply_q="q").fail(build_failure("X", "y", "z", value=object()))
    assert json.loads(reply_of(sent[0][0])["failure"])["class"] == "RuntimeError"


def test_cast_has_no_reply(build, sent):
    build().answer(object())
    build().fail(build_failure("X", "y", "z"))
    assert sent == [(None, False), (None, True)]


def test_representation_has_no_arguments(build):
    assert repr(build(version="4.5", _context_request_id="req-1")) == "Call(run 4.5, req-1)"
