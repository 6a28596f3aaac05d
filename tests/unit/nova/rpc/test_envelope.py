"""Messages as JSON in JSON."""

import json

import pytest

from roost.nova.rpc import envelope
from roost.nova.rpc.envelope import MalformedMessage, decode
from roost.nova.rpc.rpc_failure import build_failure, internal_error


def body(**inner):
    return json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(inner)}).encode()


def test_call_is_decoded_without_the_secrets_of_its_context():
    message = decode(
        body(
            method="run",
            version="4.5",
            args={"a": [1]},
            _msg_id="m",
            _reply_q="q",
            _timeout=60,
            _unique_id="u",
            _context_request_id="req-1",
            _context_user_id="a-user",
            _context_roles=["admin", 5],
            _context_is_admin=True,
            _context_auth_token="hunter2",
            _context_service_catalog=[{"password": "hunter2"}],
        )
    )
    assert (message.method, message.version, message.args) == ("run", "4.5", {"a": [1]})
    assert (message.message_id, message.reply_queue, message.timeout_s, message.unique_id) == ("m", "q", 60, "u")
    assert (message.context.request_id, message.context.user_id, message.context.roles) == (
        "req-1",
        "a-user",
        ("admin",),
    )
    assert message.needs_reply
    assert not hasattr(message.context, "auth_token")
    assert "hunter2" not in repr(message.context) + repr(message)


def test_cast_needs_no_reply_and_has_defaults():
    message = decode(body(method="run"))
    assert not message.needs_reply
    assert (message.version, message.namespace, message.args, message.timeout_s) == ("1.0", None, {}, None)


@pytest.mark.parametrize("timeout", [0, -1, None])
def test_timeout_without_sense_is_none(timeout):
    assert decode(body(method="run", _timeout=timeout)).timeout_s is None


@pytest.mark.parametrize(
    "inner",
    [
        {},
        {"method": ""},
        {"method": 5},
        {"method": "run", "args": []},
        {"method": "run", "_msg_id": 5},
        {"method": "run", "_msg_id": "m", "_reply_q": "ä" * 200},
        {"method": "run", "_timeout": "60"},
        {"method": "x" * 256},
    ],
    ids=str,
)
def test_message_with_wrong_fields_is_malformed(inner):
    with pytest.raises(MalformedMessage):
        decode(body(**inner))


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"null", b"[]", b'{"oslo.version": "2.0"}', b'"x"'])
def test_body_without_an_envelope_is_malformed(text):
    with pytest.raises(MalformedMessage):
        decode(text)


def test_other_versions_of_the_envelope_are_malformed():
    with pytest.raises(MalformedMessage, match="another version than 2"):
        decode(b'{"oslo.version": "1.0", "oslo.message": "{}"}')
    assert decode(body(method="run").replace(b"2.0", b"2.1")).method == "run"


def test_body_above_the_limit_is_not_decoded():
    text = body(method="run")
    assert decode(text, bytes_max=len(text))
    with pytest.raises(MalformedMessage, match=r"bytes, more than 10"):
        decode(text, bytes_max=10)


def test_deeply_nested_message_is_malformed():
    inner = '{"method": "run", "args": ' + '{"a":' * 100_000
    with pytest.raises(MalformedMessage):
        decode(json.dumps({"oslo.version": "2.0", "oslo.message": inner}).encode())


def test_problem_has_no_content_of_the_message():
    with pytest.raises(MalformedMessage) as error:
        decode(b'{"oslo.version": "2.0", "oslo.message": "{\\"method\\": \\"run\\", hunter2"}')
    assert "hunter2" not in str(error.value)


def decode_reply(reply):
    outer = json.loads(reply)
    assert set(outer) == {"oslo.version", "oslo.message"}
    inner = json.loads(outer["oslo.message"])
    assert len(inner.pop("_unique_id")) == 32
    return inner


def test_replies_have_the_fields_of_oslo_messaging():
    common = {"_msg_id": "m", "result": None, "failure": None, "ending": True}
    assert decode_reply(envelope.encode_answer("m", [{"a": None}])) == {**common, "result": [{"a": None}]}
    assert decode_reply(envelope.encode_still_working("m")) == {**common, "ending": False}
    failure = build_failure("NoValidHost", "nova.exception", "text", reason="r", code=500)
    assert decode_reply(envelope.encode_failure("m", failure)) == {**common, "failure": failure.as_text()}


def test_failure_is_json_text_with_one_line_of_traceback():
    fields = json.loads(internal_error("it broke").as_text())
    assert fields == {
        "class": "RuntimeError",
        "module": "builtins",
        "message": "it broke",
        "tb": ["RuntimeError: it broke\n"],
        "args": ["it broke"],
        "kwargs": {},
    }
