"""Checks of the values that drivers return, before they are sent to the server."""

from typing import TypeVar

import msgspec

from roost.errors import first_line, quote_value
from roost.model.names import is_text
from roost.model.work.guest import GuestReport, GuestSpec, TransferTarget
from roost.model.work.orders import AGENTS_MAX

T = TypeVar("T")


def check_guests(value: object) -> list[GuestReport]:
    """Return the guests that a driver listed.

    Raises:
        TypeError: the value is not a list of ``GuestReport``.
    """
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, GuestReport) for each in value):
        raise TypeError(f"guests of the driver returned {type(value).__name__}, not a list of GuestReport")
    return [_check(each, GuestReport, of="guests") for each in value]


def check_nodes(value: object) -> list[str]:
    """Return the names of the nodes that a driver listed.

    Raises:
        TypeError: the value is not a list of names, a name has a slash, or a name is a duplicate.
    """
    if not isinstance(value, (list, tuple)) or len(value) > AGENTS_MAX:
        raise TypeError(
            f"nodes of the driver returned {type(value).__name__}, not a list of at most {AGENTS_MAX} names"
        )
    for each in value:
        is_name = isinstance(each, str) and bool(each) and is_text(each, length_max=255)
        if not is_name or "/" in each or value.count(each) > 1:
            raise TypeError(
                f"nodes of the driver returned {quote_value(each)}, which is not a name, has a slash, or is a duplicate"
            )
    return [*value]


def check_guest(value: object) -> GuestReport | None:
    """Return the guest that a driver inspected; None if there is none.

    Raises:
        TypeError: the value is neither ``GuestReport`` nor None.
    """
    return None if value is None else _check(value, GuestReport, of="inspect")


def check_prepared(value: object, guest: GuestSpec) -> TransferTarget:
    """Return the transfer target from a driver's ``prepare``.

    Raises:
        TypeError: the value is not a ``TransferTarget``, or belongs to another guest or node.
    """
    prepared = _check(value, TransferTarget, of="prepare")
    if (prepared.uuid, prepared.node) != (guest.uuid, guest.node):
        raise TypeError(f"prepare of the driver returned an address for {prepared.uuid} on {prepared.node}")
    return prepared


def _check(value: object, kind: type[T], *, of: str) -> T:
    """Check the type and the fields of a driver's value by encoding and decoding it as JSON; return it.

    Raises:
        TypeError: the value has another type, or fields of wrong types.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{of} of the driver returned {type(value).__name__}, not {kind.__name__}")
    try:
        return msgspec.json.decode(msgspec.json.encode(value), type=kind)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise TypeError(f"{of} of the driver returned an invalid {kind.__name__}: {first_line(error)}") from None
