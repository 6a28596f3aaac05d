"""Ports in the URL of a database server."""

from roost.errors import BadSettings

_MAX = 65_535


def check_port(text: str) -> int:
    """Return a port.

    The message does not quote it: with an unescaped slash in the password, it is a part of the password.

    Raises:
        BadSettings: it is not the number of a port.
    """
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= _MAX):
        raise BadSettings("store.url", f"must have ports 1..{_MAX}; in a password, write / as %2F, # as %23, ? as %3F")
    return int(text)
