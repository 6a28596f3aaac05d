"""The message around a payload: its publisher, its event, and the context of the caller.

As in oslo.messaging, the context has the caller's identity, without tokens and without the catalog of services.
"""

import uuid
from datetime import UTC, datetime
from typing import Any

import msgspec

from roost.nova.rpc.envelope import CallContext, enclose


def build_notification(
    context: CallContext, payload: dict[str, Any], *, event: str, publisher: str, time_s: float
) -> dict[str, Any]:
    """Return a notification without an envelope.

    Args:
        payload: the content.
        event: the type of the event, such as ``scheduler.select_destinations.start``.
        publisher: the service and its host.
        time_s: time of the event, seconds since the epoch.

    Source:
        oslo_messaging/notify/notifier.py and oslo_messaging/_drivers/amqp.py, pack_context.
    """
    moment = datetime.fromtimestamp(time_s, UTC).replace(tzinfo=None)
    return {
        "message_id": str(uuid.uuid4()),
        "publisher_id": publisher,
        "event_type": event,
        "priority": "INFO",
        "payload": payload,
        "timestamp": moment.isoformat(" ", "microseconds"),
        **{f"_context_{name}": value for name, value in _fields(context, moment).items()},
    }


def encode_notification(message: dict[str, Any], *, has_envelope: bool) -> bytes:
    """Return the body of a notification; each body has an identifier of its own.

    Raises:
        TypeError, ValueError: the payload has no form in JSON.
    """
    inner = {**message, "_unique_id": uuid.uuid4().hex}
    return enclose(inner) if has_envelope else msgspec.json.encode(inner)


def _fields(context: CallContext, moment: datetime) -> dict[str, Any]:
    """Return the fields of a context of Nova.

    Source:
        oslo_context/context.py, redacted_copy, and nova/context.py, to_dict.
    """
    parts = (context.user_id, context.project_id, context.domain, context.user_domain, context.project_domain)
    return {
        "user": context.user_id,
        "user_id": context.user_id,
        "user_name": context.user_name,
        "user_domain": context.user_domain,
        "project": context.project_id,
        "project_id": context.project_id,
        "project_name": context.project_name,
        "project_domain": context.project_domain,
        "domain": context.domain,
        "system_scope": context.system_scope,
        "user_identity": " ".join(part or "-" for part in parts),
        "roles": list(context.roles),
        "is_admin": context.is_admin,
        "is_admin_project": True,
        "request_id": context.request_id,
        "global_request_id": context.global_request_id,
        "timestamp": moment.isoformat("T", "microseconds"),
        "read_deleted": "no",
        "read_only": False,
        "show_deleted": False,
        "auth_token": None,
        "service_catalog": [],
        "resource_uuid": None,
        "remote_address": None,
        "quota_class": None,
    }
