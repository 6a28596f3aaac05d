"""Stored flavors and images: list, show, store and delete."""

import msgspec
from msgspec import UNSET, UnsetType

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.schemas.stored_names import FlavorsList, FlavorsQuery, ImagesList, ShownImage
from roost.api.v1.wire.decode_body import field_problem, missing_problem
from roost.errors import BadRequest
from roost.fleet.stored_documents import bodies_of, body_of, plan_document
from roost.model.documents.request_body import request_body
from roost.model.documents.request_document import FlavorEntry, ImageEntry, RequestDocument
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.stored_names import Noun
from roost.placement.write_plan import Plan

_encode = msgspec.json.Encoder().encode


def list_flavors(call: Call) -> Response:
    """List stored flavors, ordered by name.

    With ``requested``, flavors of stored decisions are added, except those with the name of a stored flavor. With
    ``shapes``, the different requests among 2,000 stored ones are added, for ``POST /v1/capacity``. Clients without
    policy roost:all_projects see only the shapes of their own project.
    """
    query = call.query
    assert isinstance(query, FlavorsQuery)
    shapes: list[RequestDocument] | UnsetType = UNSET
    if query.shapes:
        found = call.product.shapes(project_id=call.project)
        shapes = [msgspec.convert(request_body(shape), RequestDocument) for shape in found]
    if query.requested:
        return json_response(FlavorsList(flavors=call.product.flavors(), shapes=shapes))
    bodies = bodies_of(call.current.state, "flavor").values()
    flavors = [msgspec.json.decode(body, type=Flavor) for body in bodies]
    return json_response(FlavorsList(flavors=flavors, shapes=shapes))


def show_flavor(call: Call) -> Response:
    """Show a stored flavor.

    Fails with 404 for an unknown name.
    """
    return json_response(
        msgspec.json.decode(body_of(call.current.state, "flavor", call.parameter("name")), type=Flavor)
    )


def store_flavor(call: Call) -> Plan[Response] | Response:
    """Create or replace a stored flavor.

    Returns the flavor. Fails with 400 for invalid extra specs, or a name other than that in the path.
    """
    body, name = call.body, call.parameter("name")
    assert isinstance(body, FlavorEntry)
    if body.name not in ("", name):
        raise field_problem("$.name", f"must be {name[:70]!r}, the name in the path, got {body.name[:70]!r}")
    try:
        call.product.check_extra_specs(body.extra_specs)
    except BadRequest as error:
        raise field_problem("$.extra_specs", str(error)) from None
    flavor = msgspec.convert({**msgspec.structs.asdict(body), "name": name}, Flavor)
    return _store(call, "flavor", body=_encode(flavor), answer=json_response(flavor))


def delete_flavor(call: Call) -> Plan[Response] | Response:
    """Delete a stored flavor.

    Fails with 404 for an unknown name.
    """
    return _delete(call, "flavor")


def list_images(call: Call) -> Response:
    """List stored images, ordered by name."""
    bodies = bodies_of(call.current.state, "image").items()
    return json_response(ImagesList(images=[_image(name, body) for name, body in bodies]))


def show_image(call: Call) -> Response:
    """Show a stored image.

    Fails with 404 for an unknown name.
    """
    name = call.parameter("name")
    return json_response(_image(name, body_of(call.current.state, "image", name)))


def store_image(call: Call) -> Plan[Response] | Response:
    """Create or replace a stored image.

    Returns the image.
    """
    assert isinstance(call.body, ImageEntry)
    body = _encode(call.body)
    return _store(call, "image", body=body, answer=json_response(_image(call.parameter("name"), body)))


def delete_image(call: Call) -> Plan[Response] | Response:
    """Delete a stored image.

    Fails with 404 for an unknown name.
    """
    return _delete(call, "image")


def find_image(call: Call, name: str, *, at: str) -> ImageEntry:
    """Return the stored image with a name.

    Raises:
        Problem: 400, there is none.
    """
    body = bodies_of(call.current.state, "image").get(name)
    if body is None:
        raise missing_problem(at, "image", name)
    return _entry(body)


def _entry(body: bytes) -> ImageEntry:
    # Decoded without limits: a stored image stays usable even if it exceeds newer limits.
    return ImageEntry(**msgspec.structs.asdict(msgspec.json.decode(body, type=Image)))


def _image(name: str, body: bytes) -> ShownImage:
    entry = _entry(body)
    return ShownImage(name=name, id=entry.id, disk_format=entry.disk_format, properties=entry.properties)


def _store(call: Call, noun: Noun, *, body: bytes, answer: Response) -> Plan[Response] | Response:
    name = call.parameter("name")
    call.note(f"{noun}.update" if name in bodies_of(call.current.state, noun) else f"{noun}.create")
    writes = plan_document(call.current.state, noun, name, body=body)
    return Plan(answer=answer, writes=writes) if writes else answer


def _delete(call: Call, noun: Noun) -> Plan[Response]:
    state, name = call.current.state, call.parameter("name")
    body_of(state, noun, name)
    return Plan(answer=Response(status=204), writes=plan_document(state, noun, name, body=b""))
