"""The stored documents of an instance: its request, flavor and image."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from roost.engine.columns.state import State
from roost.errors import report_corruption
from roost.fleet.stored_documents import document_of
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.names import uuid_form, uuid_text
from roost.model.request import Request
from roost.model.work.work_rows import StatusRow
from roost.model.writes import PutDocument

Documents = Callable[[int], bytes | None]  # number of a document -> its body

T = TypeVar("T", Flavor, Image, Request)


def request_of(documents: Documents, status: StatusRow) -> Request:
    """Return the request to build an instance now, with its present flavor.

    Raises:
        StoreBroken: the document is missing, or cannot be decoded.
    """
    request = _read(documents, status.request_id, Request, status=status)
    return msgspec.structs.replace(request, flavor=_read(documents, status.flavor_id, Flavor, status=status))


def group_of(documents: Documents, status: StatusRow) -> str | None:
    """Return the uuid of the server group that the request of an instance joins, if any.

    Raises:
        StoreBroken: the document is missing, or cannot be decoded.
    """
    joined = _read(documents, status.request_id, Request, status=status).group_joined
    return None if joined is None else uuid_form(joined)


def renew_request(stored: Request, status: StatusRow) -> Request:
    """Return the scheduler request of an existing instance, from its original request.

    Forced hosts and earlier attempts are left out, because they concerned only the build.
    """
    return msgspec.structs.replace(
        stored,
        count=1,
        instance_uuids=(uuid_text(status.uuid),),
        user_id=status.user_id,
        force_hosts=(),
        force_nodes=(),
        ignore_hosts=(),
        retry=None,
    )


def image_of(documents: Documents, status: StatusRow) -> Image:
    """Return the image of an instance; for a shelved instance, its saved image.

    Raises:
        StoreBroken: the document is missing, or cannot be decoded.
    """
    return _read(documents, status.image_id, Image, status=status) if status.image_id else Image()


def store_document(state: State, kind: str, body: bytes) -> tuple[int, tuple[PutDocument, ...]]:
    """Return the number of a document, and the write to store it if it is new."""
    document = document_of(kind, body, body)
    return document.id, () if (kind, document.fingerprint) in state.documents else (document,)


def store_image(state: State, image: Image | None) -> tuple[int, tuple[PutDocument, ...]]:
    """Return the number of an image's document, and the write to store it if it is new; without an image, 0."""
    return (0, ()) if image is None else store_document(state, "image", msgspec.json.encode(image))


def _read(documents: Documents, number: int, kind: type[T], *, status: StatusRow) -> T:
    with report_corruption(f"the {kind.__name__.lower()} of instance {uuid_text(status.uuid)}"):
        body = documents(number)
        if body is None:
            raise LookupError(f"there is no document {number}")
        return msgspec.json.decode(body, type=kind)
