"""A caller of remote procedures, made of AMQP alone, and a service for it."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import amqp

from roost.nova.rpc.broker_options import Broker as BrokerAddress
from roost.nova.rpc.broker_options import BrokerOptions
from roost.nova.rpc.rpc_call import Call
from roost.nova.rpc.rpc_server import RpcServer
from tests.support.servers.rabbitmq import Broker
from tests.support.wait import wait_until

SECRET = "gAAAAA-secret-token"
# Of a caller of Nova's services.
NOVA = BrokerOptions(brokers=(), control_exchange="nova", host="one")
CONTEXT = {
    "request_id": "req-1",
    "global_request_id": None,
    "user_id": "a-user",
    "user_name": "alice",
    "user_domain": "default",
    "project_id": "ops",
    "project_name": "operations",
    "project_domain": "default",
    "is_admin": True,
    "roles": ["admin", "reader"],
    "auth_token": SECRET,
    "service_catalog": [{"type": "placement", "endpoints": [{"publicURL": SECRET}]}],
}


@dataclass
class Service:
    """An endpoint whose methods a test chooses; it keeps all calls."""

    topic: str
    methods: dict[str, Callable[[Call], None]] = field(default_factory=dict)
    version: str = "4.5"
    minimum_version: str = "4.5"
    calls: list[Call] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.methods = {"echo": lambda call: call.answer(call.args), "keep": lambda _: None, **self.methods}
        self.handlers = {name: self._note(method) for name, method in self.methods.items()}

    def _note(self, method: Callable[[Call], None]) -> Callable[[Call], None]:
        def handler(call: Call) -> None:
            self.calls.append(call)
            self.threads.add(threading.current_thread().name)
            method(call)

        return handler


def options_for(broker: Broker, **more: Any) -> BrokerOptions:
    """Return options for a broker, with an exchange of their own and short pauses."""
    address = BrokerAddress(host="127.0.0.1", port=broker.port)
    chosen = {"brokers": (address,), "control_exchange": f"nova-{uuid.uuid4().hex[:8]}", "host": "one", **more}
    return BrokerOptions(**chosen)


@contextmanager
def served(options: BrokerOptions, service: Service, **more: Any) -> Iterator[RpcServer]:
    """Run a server during the block."""
    server = RpcServer(options, service, **more)
    server.start()
    try:
        wait_until(lambda: server.state.connected)
        yield server
    finally:
        server.stop(0)


class Caller:
    """A client with one connection and one reply queue."""

    def __init__(self, broker: Broker, options: BrokerOptions, topic: str) -> None:
        self.broker, self.exchange, self.topic = broker, options.control_exchange, topic
        self.reply_queue = f"reply_{uuid.uuid4().hex}"
        self.replies: list[dict[str, Any]] = []
        self.properties: list[dict[str, Any]] = []
        self.connect()

    def connect(self) -> None:
        """Connect, and create the reply queue."""
        self.connection = self.broker.connect()
        self.channel = self.connection.channel()
        self.channel.queue_declare(
            self.reply_queue, exclusive=False, auto_delete=False, arguments={"x-expires": 1_800_000}
        )
        self.channel.basic_consume(self.reply_queue, no_ack=True, callback=self._receive)

    def _receive(self, message: amqp.Message) -> None:
        outer = json.loads(message.body)
        assert set(outer) == {"oslo.version", "oslo.message"}
        assert outer["oslo.version"] == "2.0"
        self.replies.append(json.loads(outer["oslo.message"]))
        self.properties.append(message.properties)

    def send(
        self,
        method: str,
        args: dict[str, Any] | None = None,
        *,
        version: str = "4.5",
        is_cast: bool = False,
        is_fanout: bool = False,
        timeout: float | None = None,
        **more: Any,
    ) -> str:
        """Send a message, and return its identifier."""
        identifier = uuid.uuid4().hex
        inner = {"method": method, "version": version, "args": args or {}, "_unique_id": uuid.uuid4().hex}
        inner |= {f"_context_{name}": value for name, value in CONTEXT.items()}
        if not is_cast:
            inner |= {"_msg_id": identifier, "_reply_q": self.reply_queue, "_timeout": timeout}
        inner |= more
        self.send_body(json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(inner)}), is_fanout=is_fanout)
        return identifier

    def send_body(self, body: bytes | str, *, is_fanout: bool = False, **properties: Any) -> None:
        """Send a body as it is."""
        properties = {"content_type": "application/json", "content_encoding": "utf-8", "delivery_mode": 2, **properties}
        exchange = f"{self.topic}_fanout" if is_fanout else self.exchange
        self.channel.basic_publish(
            amqp.Message(body, **properties), exchange=exchange, routing_key="" if is_fanout else self.topic
        )

    def wait(self, identifier: str) -> list[dict[str, Any]]:
        """Wait for the last reply of a call, and return all its replies."""

        def found() -> list[dict[str, Any]]:
            replies = [reply for reply in self.replies if reply["_msg_id"] == identifier]
            return replies if any(reply["ending"] for reply in replies) else []

        return wait_until(lambda: self.read() or found())

    def read(self) -> None:
        """Read all that has arrived."""
        try:
            while True:
                self.connection.drain_events(timeout=0.02)
        except TimeoutError:
            return

    def call(self, method: str, args: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Call a method, and return its last reply."""
        return self.wait(self.send(method, args, **more))[-1]

    def close(self) -> None:
        """Close the connection."""
        self.connection.collect()
