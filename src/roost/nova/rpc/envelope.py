"""Messages as JSON in JSON, version 2.0 of oslo.messaging: calls, replies, failures, and "still working".

The outer object has the inner one as text: ``{"oslo.version": "2.0", "oslo.message": "…"}``.
"""

import math
import uuid
from typing import Any

import msgspec

from roost.nova.rpc.rpc_failure import Failure

BODY_BYTES_MAX = 16 * 1024 * 1024
_VERSION_MAJOR = "2"
# Characters of names and identifiers; longer ones cannot be of a caller.
_NAME_MAX = 255


class MalformedMessage(Exception):
    """A message cannot be decoded; the text is the reason, without content of the message."""


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """The caller's identity. The rest of the context, above all its token, is never kept."""

    request_id: str | None = None
    global_request_id: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    user_domain: str | None = None
    project_id: str | None = None
    project_name: str | None = None
    project_domain: str | None = None
    domain: str | None = None
    system_scope: str | None = None
    is_admin: bool = False
    roles: tuple[str, ...] = ()


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A received call or cast.

    Args:
        message_id, reply_queue: both None: the caller waits for no reply.
        timeout_s: the caller gives up after this time without a sign of life; None: it has another limit.
        unique_id: equal in repetitions of this message.
        size: bytes of the body.
    """

    method: str
    version: str
    namespace: str | None
    args: dict[str, Any]
    context: CallContext
    message_id: str | None
    reply_queue: str | None
    timeout_s: float | None
    unique_id: str | None
    size: int = 0

    @property
    def needs_reply(self) -> bool:
        """Whether the caller waits for a reply."""
        return self.message_id is not None and self.reply_queue is not None

    def __repr__(self) -> str:
        return f"Message({self.method} {self.version}, {self.context.request_id})"


class _Outer(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="oslo.version")
    message: str = msgspec.field(name="oslo.message")


class _Inner(msgspec.Struct, frozen=True):
    """The fields in use; the decoder drops all others without creating objects for them."""

    method: str
    args: dict[str, Any] = {}
    version: str | None = None
    namespace: str | None = None
    message_id: str | None = msgspec.field(name="_msg_id", default=None)
    reply_queue: str | None = msgspec.field(name="_reply_q", default=None)
    timeout: float | None = msgspec.field(name="_timeout", default=None)
    unique_id: str | None = msgspec.field(name="_unique_id", default=None)
    request_id: Any = msgspec.field(name="_context_request_id", default=None)
    global_request_id: Any = msgspec.field(name="_context_global_request_id", default=None)
    user_id: Any = msgspec.field(name="_context_user_id", default=None)
    user_name: Any = msgspec.field(name="_context_user_name", default=None)
    user_domain: Any = msgspec.field(name="_context_user_domain", default=None)
    project_id: Any = msgspec.field(name="_context_project_id", default=None)
    project_name: Any = msgspec.field(name="_context_project_name", default=None)
    project_domain: Any = msgspec.field(name="_context_project_domain", default=None)
    domain: Any = msgspec.field(name="_context_domain", default=None)
    system_scope: Any = msgspec.field(name="_context_system_scope", default=None)
    is_admin: Any = msgspec.field(name="_context_is_admin", default=None)
    roles: Any = msgspec.field(name="_context_roles", default=None)


_outer_decoder = msgspec.json.Decoder(_Outer)
_inner_decoder = msgspec.json.Decoder(_Inner)


def decode(body: bytes, *, bytes_max: int = BODY_BYTES_MAX) -> Message:
    """Decode the body of a message.

    Raises:
        MalformedMessage: the body is too large, or no message of this version.
    """
    if len(body) > bytes_max:
        raise MalformedMessage(f"it has {len(body)} bytes, more than {bytes_max}")
    try:
        outer = _outer_decoder.decode(body)
        if outer.version.partition(".")[0] != _VERSION_MAJOR:
            raise MalformedMessage("its envelope has another version than 2")
        inner = _inner_decoder.decode(outer.message)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise MalformedMessage(f"it is no JSON of a call: {_reason(error)}") from None
    except RecursionError:
        raise MalformedMessage("its JSON is nested too deeply") from None
    return _message(inner, size=len(body))


def _reason(error: Exception) -> str:
    """Return the reason of the decoder: positions and types, but no values."""
    return str(error) if isinstance(error, msgspec.ValidationError) else "invalid JSON"


def _message(inner: _Inner, *, size: int) -> Message:
    names = (inner.method, inner.version, inner.namespace, inner.message_id, inner.reply_queue, inner.unique_id)
    if any(len(name or "") > _NAME_MAX for name in names) or not inner.method:
        raise MalformedMessage("a name in it is empty or too long")
    # AMQP limits the name of a queue to 255 bytes.
    if len((inner.reply_queue or "").encode(errors="replace")) > _NAME_MAX:
        raise MalformedMessage("the name of its reply queue is too long")
    timeout_s = inner.timeout
    if timeout_s is not None and not (math.isfinite(timeout_s) and timeout_s > 0):
        timeout_s = None
    return Message(
        method=inner.method,
        version=inner.version or "1.0",
        namespace=inner.namespace,
        args=inner.args,
        context=_context(inner),
        message_id=inner.message_id or None,
        reply_queue=inner.reply_queue or None,
        timeout_s=timeout_s,
        unique_id=inner.unique_id or None,
        size=size,
    )


def _context(inner: _Inner) -> CallContext:
    return CallContext(
        request_id=_text(inner.request_id),
        global_request_id=_text(inner.global_request_id),
        user_id=_text(inner.user_id),
        user_name=_text(inner.user_name),
        user_domain=_text(inner.user_domain),
        project_id=_text(inner.project_id),
        project_name=_text(inner.project_name),
        project_domain=_text(inner.project_domain),
        domain=_text(inner.domain),
        system_scope=_text(inner.system_scope),
        is_admin=inner.is_admin is True,
        roles=tuple(role for role in inner.roles if isinstance(role, str)) if isinstance(inner.roles, list) else (),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def encode_answer(message_id: str, result: Any) -> bytes:
    """Return the body of an answer.

    Raises:
        TypeError, ValueError: the result has no form in JSON.
    """
    return _encode_reply(message_id, result=result)


def encode_failure(message_id: str, failure: Failure) -> bytes:
    """Return the body of a failure.

    Raises:
        TypeError, ValueError: its arguments have no form in JSON.
    """
    return _encode_reply(message_id, failure=failure.as_text())


def encode_still_working(message_id: str) -> bytes:
    """Return the body of a sign of life, so its caller keeps waiting."""
    return _encode_reply(message_id, is_last=False)


def _encode_reply(message_id: str, *, result: Any = None, failure: str | None = None, is_last: bool = True) -> bytes:
    inner = {
        "result": result,
        "failure": failure,
        "ending": is_last,
        "_msg_id": message_id,
        "_unique_id": uuid.uuid4().hex,
    }
    return enclose(inner)


def enclose(inner: dict[str, Any]) -> bytes:
    """Return the body of a message in the envelope of version 2.0.

    Raises:
        TypeError, ValueError: the message has no form in JSON.
    """
    text = msgspec.json.encode(inner).decode()
    return msgspec.json.encode({"oslo.version": "2.0", "oslo.message": text})
