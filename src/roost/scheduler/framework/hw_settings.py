"""What flavor and image say of one subject: ``hw:NAME`` in extra specs, ``hw_NAME`` in image properties."""

from collections.abc import Container

from roost.errors import BadRequest
from roost.model.request import Request
from roost.model.switches import is_true


def read_values(request: Request, name: str, *, scope: str = "hw") -> tuple[str | None, str | None]:
    """Return what the flavor says of a subject, and what the image says; None where one says nothing."""
    image = None if request.image is None else request.image.properties.get(f"{scope}_{name}")
    return request.flavor.extra_specs.get(f"{scope}:{name}"), image


def resolve_value(
    request: Request, name: str, *, scope: str = "hw", allowed: Container[str] | None = None
) -> str | None:
    """Return what flavor and image say of a subject; None if neither says anything.

    Args:
        allowed: the values that can be meant; None: any.

    Raises:
        BadRequest: they contradict each other, or a value cannot be meant.
    """
    flavor, image = read_values(request, name, scope=scope)
    if flavor is not None and image is not None and flavor != image:
        raise BadRequest(f"extra spec {scope}:{name}={flavor} contradicts image property {scope}_{name}={image}")
    value = image if flavor is None else flavor
    if value is not None and allowed is not None and value not in allowed:
        raise BadRequest(f"{value!r} is no value of extra spec {scope}:{name} or image property {scope}_{name}")
    return value


def is_enabled(request: Request, name: str) -> bool:
    """Say whether flavor or image wants something that can be wanted or not.

    Raises:
        BadRequest: one wants it and the other does not.
    """
    flavor, image = read_values(request, name)
    if flavor is not None and image is not None and is_true(flavor) != is_true(image):
        raise BadRequest(f"extra spec hw:{name}={flavor} contradicts image property hw_{name}={image}")
    return is_true(flavor) or is_true(image)
