"""Instances rebuilt, shelved, taken off their hosts, unshelved, rebooted and reset."""

from roost.api.placement.request import Response
from roost.api.problems import Problem
from roost.api.v1 import keys
from roost.api.v1.call import Call
from roost.api.v1.handlers.instance_acts import act, begin, repeated
from roost.api.v1.handlers.named import image_named
from roost.api.v1.instance_schemas import RebuildBody
from roost.conductor import changing
from roost.model.image import Image
from roost.model.names import uuid_text
from roost.model.operation import Power
from roost.placement.plans import Plan


def rebuild(call: Call) -> Response | Plan[Response]:
    """Let an instance have the disk of an image anew."""
    body, image = call.body, None
    assert isinstance(body, RebuildBody)
    known = repeated(call, "rebuild")  # Whatever became of the image since then.
    if known is not None:
        return known
    if body.image is not None:
        entry = image_named(call, body.image, at="$.image")
        image = Image(id=entry.id, disk_format=entry.disk_format, properties=entry.properties)
    filters = call.product.rules.filters
    return begin(
        call, "rebuild",
        lambda reader, uuid: changing.rebuild(
            call.current, reader, call.name, image=image, filters=filters, operation_uuid=uuid, now_s=reader.now_s()
        ),
    )  # fmt: skip


def shelve(call: Call) -> Response | Plan[Response]:
    """Let the disk of an instance be saved, and the instance run no more."""
    return begin(
        call, "shelve",
        lambda reader, uuid: changing.shelve(
            call.current, reader, call.name, operation_uuid=uuid, now_s=reader.now_s()
        ),
    )  # fmt: skip


def offload(call: Call) -> Response | Plan[Response]:
    """Let an instance that is shelved leave its host."""
    return begin(
        call, "offload",
        lambda reader, uuid: changing.offload(
            call.current, reader, call.name, operation_uuid=uuid, now_s=reader.now_s()
        ),
    )  # fmt: skip


def unshelve(call: Call) -> Response | Plan[Response]:
    """Let an instance that is shelved run again."""
    return begin(
        call, "unshelve",
        lambda reader, uuid: changing.unshelve(
            call.current, reader, call.name, operation_uuid=uuid, now_s=reader.now_s(),
            decision_uuid=keys.uuid_for("decision", uuid_text(uuid)),
        ),
    )  # fmt: skip


def reboot(call: Call) -> Response | Plan[Response]:
    """Let an instance begin anew."""
    return act(call, "reboot", Power())


def reset(call: Call) -> Response | Plan[Response]:
    """Let an instance in ERROR be what its host says that it is."""
    identity = call.request.identity
    if identity is None or "admin" not in identity.roles:
        raise Problem(403, "to say that an instance in ERROR is well is for admin")
    return act(call, "reset", Power())
