"""The rules of names and uuids in the fleet."""

from roost.errors import BadRequest
from roost.model.names import is_text, uuid_bytes

_NAME_MAX = 255


def check_name(name: str, of: str, *, length_min: int = 0) -> None:
    """Refuse a name that some database cannot store.

    Args:
        of: the object, for the error.
        length_min: 0 or 1.

    Raises:
        BadRequest: it is too short, too long, or not text.
    """
    if len(name) < length_min or not is_text(name, length_max=_NAME_MAX):
        raise BadRequest(f"{of}: its name must be {length_min}..{_NAME_MAX} characters of text, got {name[:70]!r}")


def uuid_bytes_of(text: str, kind: str) -> bytes:
    """Return the 16 bytes of a uuid.

    Raises:
        BadRequest: it is malformed.
    """
    body = uuid_bytes(text)
    if body is None:
        raise BadRequest(f"the {kind} {text!r} is not a valid UUID")
    return body
