"""Settings of flavor and image under one name: extra spec ``hw:NAME`` and image property ``hw_NAME``."""

from collections.abc import Container

from roost.errors import BadRequest
from roost.model.request import Request
from roost.model.switches import is_true


def read_values(request: Request, name: str, *, scope: str = "hw") -> tuple[str | None, str | None]:
    """Return the flavor's and the image's value, None if unset."""
    image = None if request.image is None else request.image.properties.get(f"{scope}_{name}")
    return request.flavor.extra_specs.get(f"{scope}:{name}"), image


def resolve_value(
    request: Request, name: str, *, scope: str = "hw", allowed: Container[str] | None = None
) -> str | None:
    """Return the value of flavor or image; None if both are unset.

    Args:
        allowed: the valid values; None: any.

    Raises:
        BadRequest: flavor and image contradict each other, or the value is invalid.
    """
    flavor, image = read_values(request, name, scope=scope)
    if flavor is not None and image is not None and flavor != image:
        raise BadRequest(f"extra spec {scope}:{name}={flavor} contradicts image property {scope}_{name}={image}")
    value = image if flavor is None else flavor
    if value is not None and allowed is not None and value not in allowed:
        raise BadRequest(
            f"{value!r} is not a valid value of extra spec {scope}:{name} or image property {scope}_{name}"
        )
    return value


def is_enabled(request: Request, name: str) -> bool:
    """Return whether flavor or image enables a switch.

    Raises:
        BadRequest: one enables it, and the other disables it.
    """
    flavor, image = read_values(request, name)
    if flavor is not None and image is not None and is_true(flavor) != is_true(image):
        raise BadRequest(f"extra spec hw:{name}={flavor} contradicts image property hw_{name}={image}")
    return is_true(flavor) or is_true(image)
