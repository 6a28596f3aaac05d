"""A caller of oslo.messaging, for the Python of the reference: one JSON request per line in, one JSON result out."""

import json
import sys

import oslo_messaging
from oslo_config import cfg

EXCEPTIONS = ["nova.exception"]


class Context:
    """A context of the form that oslo.messaging passes on."""

    def serialize_context(self, context):
        """Return the form of a context in a message."""
        return context

    def deserialize_context(self, context):
        """Return a context."""
        return context

    def serialize_entity(self, context, entity):
        """Return the form of a value in a message."""
        return entity

    def deserialize_entity(self, context, entity):
        """Return a value."""
        return entity


def run(client, request):
    """Send one message, and describe its outcome."""
    client = client.prepare(**request.get("prepare", {}))
    context = {"request_id": "req-oslo", "user_id": "a-user", "project_id": "ops", "auth_token": "secret", "roles": []}
    if request["kind"] == "cast":
        client.cast(context, request["method"], **request["args"])
        return {"result": None}
    try:
        return {"result": client.call(context, request["method"], **request["args"])}
    except Exception as error:  # noqa: BLE001  # Any class may be rebuilt.
        return {
            "class": type(error).__name__,
            "module": type(error).__module__,
            "bases": [base.__name__ for base in type(error).__mro__],
            "text": str(error),
            "exc_type": getattr(error, "exc_type", None),
            "kwargs": getattr(error, "kwargs", None),
        }


def main():
    """Serve requests until the end of the input."""
    url, exchange, topic = sys.argv[1:]
    conf = cfg.CONF  # With another object, oslo.messaging loses messages.
    conf([])
    oslo_messaging.set_transport_defaults(control_exchange=exchange)
    transport = oslo_messaging.get_rpc_transport(conf, url=url, allowed_remote_exmods=EXCEPTIONS)
    target = oslo_messaging.Target(topic=topic, version="4.0")
    client = oslo_messaging.get_rpc_client(
        transport, target, version_cap="4.9", serializer=Context(), timeout=60, call_monitor_timeout=None
    )
    for line in sys.stdin:
        print(json.dumps(run(client, json.loads(line))), flush=True)


main()
