"""Changes of instances: rebuild, shelve, offload, unshelve, reboot and reset."""

from functools import partial

from roost.api.http import Response
from roost.api.v1.call import Call
from roost.api.v1.handlers.instance_acts import act, begin, find_repeat
from roost.api.v1.handlers.stored_names import find_image
from roost.api.v1.idempotency import operation_uuid
from roost.api.v1.schemas.instances import RebuildBody
from roost.conductor.intake import accept_changes
from roost.model.image import Image
from roost.model.names import derive_uuid, uuid_text
from roost.model.work.operation import PowerChange
from roost.placement.write_plan import Plan


def rebuild(call: Call) -> Response | Plan[Response]:
    """Rebuild an instance from its image or another one.

    Returns the operation (202). Fails with 400 for an unknown image, with 404 for an unknown instance, with 409 if its
    status or a filter excludes a rebuild.
    """
    body, image = call.body, None
    assert isinstance(body, RebuildBody)
    repeat = find_repeat(call, "rebuild")  # A repeated request matches even if the image has changed since.
    if repeat is not None:
        return repeat
    if body.image is not None:
        entry = find_image(call, body.image, at="$.image")
        image = Image(id=entry.id, disk_format=entry.disk_format, properties=entry.properties)
    return begin(call, "rebuild", partial(accept_changes.rebuild, image=image, filters=call.product.rules.filters))


def shelve(call: Call) -> Response | Plan[Response]:
    """Shelve an instance: save its disk and stop it.

    Returns the operation (202). Fails with 404 for an unknown instance, with 409 for an unsuitable status.
    """
    return begin(call, "shelve", accept_changes.shelve)


def offload(call: Call) -> Response | Plan[Response]:
    """Remove a shelved instance from its host.

    Returns the operation (202). Fails with 404 for an unknown instance, with 409 for an unsuitable status.
    """
    return begin(call, "offload", accept_changes.offload)


def unshelve(call: Call) -> Response | Plan[Response]:
    """Start a shelved instance, on a new host if it was offloaded.

    Returns the operation (202). Fails with 404 for an unknown instance, with 409 for an unsuitable status.
    """
    decision_uuid = derive_uuid("decision", uuid_text(operation_uuid(call)))
    return begin(call, "unshelve", partial(accept_changes.unshelve, decision_uuid=decision_uuid))


def reboot(call: Call) -> Response | Plan[Response]:
    """Reboot an instance.

    Returns the operation (202). Fails with 404 for an unknown instance, with 409 for an unsuitable status.
    """
    return act(call, "reboot", PowerChange())


def reset(call: Call) -> Response | Plan[Response]:
    """Reset an instance in ERROR to the state that its host reports, or move it to the host that holds its guest.

    Returns the operation (202). Fails with 404 for an unknown instance, with 409 for an unsuitable status.
    """
    return act(call, "reset", PowerChange())
