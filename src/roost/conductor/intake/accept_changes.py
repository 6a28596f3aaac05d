"""Accept requests to rebuild, shelve, offload or unshelve an instance.

Each function is part of a task, as in ``conductor.intake.accept``. It stores all inputs of the operation.
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from roost.conductor.intake.accept import WorkIndex, act, find_status
from roost.conductor.operation.reconcile import check_settled
from roost.conductor.operation.step import CHOOSE
from roost.conductor.operation.stored_request import image_of, renew_request, request_of, store_document, store_image
from roost.errors import BadRequest, Conflict
from roost.model.image import Image
from roost.model.names import uuid_text
from roost.model.request import Destination, Request
from roost.model.work.change_memory import InstanceRebuild, Shelve, Unshelve
from roost.model.work.operation import may_begin
from roost.model.work.work_rows import OperationRow, StatusRow
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.ports import Commits, WorkReader
from roost.scheduler.explain.rebuild_check import rebuild_refusal
from roost.scheduler.framework.plugin import Filter

Acceptance = Plan[OperationRow] | OperationRow


def rebuild(
    current: Current,
    reader: WorkReader,
    instance_uuid: str,
    *,
    image: Image | None,
    filters: Sequence[Filter],
    operation_uuid: bytes,
    now_s: float,
) -> Acceptance:
    """Accept a rebuild of an instance from an image.

    Args:
        image: None: its present image.
        filters: the enabled filters; those for rebuilds must accept a new image on its host.

    Raises:
        BadRequest: it boots from a volume, so it cannot have another image.
        NotFound: there is no such instance.
        Conflict: its status does not allow a rebuild, or a filter refuses the image on its host.
    """
    status = find_status(reader, instance_uuid)
    request, old_image = request_of(current.store.document, status), image_of(current.store.document, status)
    if image is not None and request.is_bfv:
        raise BadRequest(f"the instance {uuid_text(status.uuid)} boots from a volume: it cannot have another image")
    image = old_image if image is None else image
    renewed = msgspec.structs.replace(request, image=image if image != Image() else None)
    if image.id != old_image.id and not may_begin("rebuild", status):
        refusal = rebuild_refusal(filters, renewed, state=current.state, node=status.node, now_s=now_s)
        if refusal:
            raise Conflict(f"the instance {uuid_text(status.uuid)} cannot be rebuilt from this image: {refusal}")
    image_id, images = store_image(current.state, renewed.image)
    request_id, requests = store_document(current.state, "request", renewed.body())
    body = InstanceRebuild(request=renewed, image_id=image_id, request_id=request_id, is_on=status.status != "SHUTOFF")
    plan = act(current, reader, instance_uuid, kind="rebuild", body=body, operation_uuid=operation_uuid, now_s=now_s)
    if isinstance(plan, Plan):
        check_settled(reader, status, act="be rebuilt")
    return replace(plan, writes=(*images, *requests)) if isinstance(plan, Plan) else plan


def shelve(
    current: Current, reader: WorkReader, instance_uuid: str, *, operation_uuid: bytes, now_s: float
) -> Acceptance:
    """Accept a request to shelve an instance: stop it, save its disk, and offload it if the settings require it.

    Raises:
        NotFound: there is no such instance.
        Conflict: its status does not allow the operation.
    """
    status = find_status(reader, instance_uuid)
    body = Shelve(
        image=image_of(current.store.document, status),
        is_on=status.status == "ACTIVE",
        is_saved=not request_of(current.store.document, status).is_bfv,
    )
    return act(current, reader, instance_uuid, kind="shelve", body=body, operation_uuid=operation_uuid, now_s=now_s)


def offload(
    current: Commits,
    reader: WorkIndex,
    instance_uuid: str,
    *,
    operation_uuid: bytes,
    now_s: float,
    parent_id: int = 0,
) -> Acceptance:
    """Accept a request to offload: a shelved instance leaves its host.

    Args:
        parent_id: id of the parent operation; 0: none.

    Raises:
        NotFound: there is no such instance.
        Conflict: its status does not allow the operation.
    """
    body = Shelve(image=Image(), is_on=False)  # Its disk is saved already.
    return act(
        current,
        reader,
        instance_uuid,
        kind="offload",
        body=body,
        operation_uuid=operation_uuid,
        now_s=now_s,
        parent_id=parent_id,
    )


def unshelve(
    current: Current, reader: WorkReader, instance_uuid: str, *, operation_uuid: bytes, decision_uuid: str, now_s: float
) -> Acceptance:
    """Accept a request to unshelve an instance.

    Args:
        decision_uuid: of the future decision, if the instance has no host.

    Raises:
        NotFound: there is no such instance.
        Conflict: its status does not allow the operation.
    """
    status = find_status(reader, instance_uuid)
    request = request_of(current.store.document, status)
    image_id, images = store_image(current.state, request.image)
    body = Unshelve(
        request=_request_in_cell(request, status),
        image=image_of(current.store.document, status),
        image_id=image_id,
        decision_uuid=decision_uuid,
    )
    plan = act(
        current,
        reader,
        instance_uuid,
        kind="unshelve",
        body=body,
        operation_uuid=operation_uuid,
        now_s=now_s,
        step="send" if status.host else CHOOSE,
    )
    return replace(plan, writes=images) if isinstance(plan, Plan) else plan


def _request_in_cell(request: Request, status: StatusRow) -> Request:
    """Return the scheduler request of an instance without a host; its cell and group stay."""
    destination = request.destination
    if status.cell:
        destination = msgspec.structs.replace(destination or Destination(), cell=status.cell)
    return msgspec.structs.replace(renew_request(request, status), destination=destination)
