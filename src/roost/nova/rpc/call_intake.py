"""From a message to a handler: duplicates, versions, and methods."""

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from roost.nova.rpc.envelope import Message
from roost.nova.rpc.open_calls import OpenCalls
from roost.nova.rpc.rpc_call import Call
from roost.nova.rpc.rpc_failure import Failure, internal_error, reject_method, reject_version
from roost.nova.rpc.rpc_monitor import RpcMonitor
from roost.observe import log

Handler = Callable[[Call], None]
Respond = Callable[[Call, bytes | None, bool], None]
_VERSION = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")
# Identifiers of messages to compare with, as in oslo.messaging.
_UNIQUE_IDS_MAX = 16
# The interface that every service of Nova has.
_BASE_NAMESPACE, _BASE_VERSION = "baseapi", "1.1"


class Endpoint(Protocol):
    """The methods of a service.

    ``version`` is that of the interface: a message needs the same major version, and no higher minor one. A call, not
    a cast, also needs at least ``minimum_version``: Nova sends each cast with the version that introduced its method.
    """

    @property
    def topic(self) -> str:
        """The name of the service, and of its shared queue."""

    @property
    def version(self) -> str:
        """The version, such as ``4.5``."""

    @property
    def minimum_version(self) -> str:
        """The lowest version of calls."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """A function for each method; it returns quickly, and answers the call later from any thread."""


class CallIntake:
    """Passes messages to the handlers of an endpoint, in the receiving thread."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        open_calls: OpenCalls,
        monitor: RpcMonitor,
        respond: Respond,
        takes_copies: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._takes_copies = takes_copies
        self._open_calls, self._monitor, self._respond = open_calls, monitor, respond
        self._unique_ids: deque[str] = deque(maxlen=_UNIQUE_IDS_MAX)

    def take(self, message: Message, *, received_s: float) -> None:
        """Handle a message after its receipt."""
        if message.unique_id is not None:
            if message.unique_id in self._unique_ids:
                self._monitor.count_message("duplicate")
                return
            self._unique_ids.append(message.unique_id)
        if self._takes_copies:  # Another server replies.
            message = msgspec.structs.replace(message, message_id=None, reply_queue=None)
        call = Call(message, self._respond)
        if call.needs_reply:
            self._open_calls.add(call, received_s=received_s)
        failure = self._find_failure(message)
        if failure is not None:
            self._monitor.count_message("refused")
            log.event(
                "rpc_message_refused",
                method=message.method,
                version=message.version,
                problem=failure.class_name,
                request_id=message.context.request_id,
            )
            call.fail(failure)
            return
        self._monitor.count_message("call" if call.needs_reply else "cast")
        handler = _ping(self._endpoint.topic) if message.namespace else self._endpoint.handlers[message.method]
        try:
            handler(call)
        except Exception as error:  # noqa: BLE001  # An error of one call must not end the server.
            log.fault(message.context.request_id or "", error)
            call.fail(internal_error())

    def _find_failure(self, message: Message) -> Failure | None:
        """Return the failure of a message without a handler; None: it has one."""
        method, version = message.method, message.version
        if message.namespace:
            is_base = message.namespace == _BASE_NAMESPACE
            if not is_base or not accepts(version, newest=_BASE_VERSION, oldest="1.0"):
                return reject_version(version, method)
            return None if method == "ping" else reject_method(method)
        newest = self._endpoint.version
        oldest = self._endpoint.minimum_version if message.needs_reply else f"{newest.partition('.')[0]}.0"
        if not accepts(version, newest=newest, oldest=oldest):
            return reject_version(version, method)
        return None if method in self._endpoint.handlers else reject_method(method)


def accepts(version: str, *, newest: str, oldest: str) -> bool:
    """Say whether a server accepts a version.

    >>> [accepts(version, newest="4.5", oldest="4.2") for version in ("4.1", "4.2", "4.5", "4.6", "5.2", "4")]
    [False, True, True, False, False, False]
    """
    parts, newest_parts, oldest_parts = (_VERSION.fullmatch(text) for text in (version, newest, oldest))
    assert newest_parts is not None, newest
    assert oldest_parts is not None, oldest
    if parts is None or int(parts[1]) != int(newest_parts[1]):
        return False
    return (int(oldest_parts[1]), int(oldest_parts[2])) <= (int(parts[1]), int(parts[2])) and int(parts[2]) <= int(
        newest_parts[2]
    )


def _ping(topic: str) -> Handler:
    return lambda call: call.answer({"service": topic, "arg": call.args.get("arg")})
