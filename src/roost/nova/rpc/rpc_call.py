"""One call, its context, and its only answer."""

import threading
from collections.abc import Callable
from typing import Any

from roost.nova.rpc.envelope import CallContext, Message, encode_answer, encode_failure
from roost.nova.rpc.rpc_failure import Failure, internal_error
from roost.observe import log

__all__ = ["Call", "CallContext"]


class Call:
    """A call or cast of a method.

    ``answer`` or ``fail`` can be called from any thread, and only the first one has an effect. For a cast, neither
    sends anything.

    Args:
        message: the message.
        respond: takes the call, the body of its reply (None for a cast), and whether the call failed.
    """

    def __init__(self, message: Message, respond: "Callable[[Call, bytes | None, bool], None]") -> None:
        self._message = message
        self._respond = respond
        self._lock = threading.Lock()
        self._is_answered = False

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._message.method

    @property
    def version(self) -> str:
        """The version of the caller's interface."""
        return self._message.version

    @property
    def args(self) -> dict[str, Any]:
        """The arguments by name."""
        return self._message.args

    @property
    def context(self) -> CallContext:
        """The caller's identity."""
        return self._message.context

    @property
    def size(self) -> int:
        """The bytes of its message."""
        return self._message.size

    @property
    def timeout_s(self) -> float | None:
        """Seconds without a sign of life until the caller gives up; the server sends such signs itself."""
        return self._message.timeout_s

    @property
    def needs_reply(self) -> bool:
        """Whether the caller waits for a reply."""
        return self._message.needs_reply

    @property
    def message_id(self) -> str:
        """The identifier of the call for its replies; empty for a cast."""
        return self._message.message_id or ""

    @property
    def reply_queue(self) -> str:
        """The queue of the caller; empty for a cast."""
        return self._message.reply_queue or ""

    def answer(self, result: Any) -> None:
        """Answer the call.

        A result without a form in JSON is a fault: it is logged, and the caller gets an internal error.
        """
        if self._take():
            try:
                body = encode_answer(self.message_id, result) if self.needs_reply else None
            except (TypeError, ValueError, RecursionError) as error:
                self._break(error)
            else:
                self._respond(self, body, False)

    def fail(self, failure: Failure) -> None:
        """Answer the call with a failure."""
        if self._take():
            try:
                body = encode_failure(self.message_id, failure) if self.needs_reply else None
            except (TypeError, ValueError, RecursionError) as error:
                self._break(error)
            else:
                self._respond(self, body, True)

    def _take(self) -> bool:
        """Return whether this is the first answer."""
        with self._lock:
            is_first, self._is_answered = not self._is_answered, True
        if not is_first:
            log.event("rpc_answer_ignored", method=self.method, request_id=self.context.request_id)
        return is_first

    def _break(self, error: Exception) -> None:
        log.fault(self.context.request_id or "", error)
        body = encode_failure(self.message_id, internal_error()) if self.needs_reply else None
        self._respond(self, body, True)

    def __repr__(self) -> str:
        return f"Call({self.method} {self.version}, {self.context.request_id})"
