"""Text that is safe to print on a terminal."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from roost.cli.text.reason_words import reason_words

_NO_HOST = "No valid host was found. "
# Any character except printable ASCII and line ends. Formatted JSON has line ends.
_NOT_ASCII = re.compile(r"[^\n -~]")


class SafeText(str):
    """A text that is escaped already, and may have colours."""

    __slots__ = ()


def escape_text(text: str) -> str:
    r"""Escape unprintable characters of a line, so that no name can move the cursor or forge a line.

    >>> escape_text("a\x1b[2J\nb")
    'a\\x1b[2J\\nb'
    """
    if isinstance(text, SafeText) or text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def brief_fault(text: str) -> str:
    """Return an error in the words of operators, without Nova's sentence before the reason, which adds nothing to it.

    >>> brief_fault("No valid host was found. 0 of 3 hosts: 3 lack 8 VCPU or more")
    '0 of 3 hosts: 3 lack 8 VCPU or more'
    """
    return reason_words(text.removeprefix(_NO_HOST) or text)


def paragraph(lines: Iterable[str]) -> str:
    """Return escaped lines as text, each with a newline."""
    return "".join(f"{escape_text(line)}\n" for line in lines)


def format_time(seconds: float) -> str:
    """Format seconds since the epoch as a UTC time."""
    try:
        time = datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, ValueError):  # Clocks may be wrong, and the calendar ends with the year 9999.
        return f"{seconds:,.0f} s after 1970"
    return time.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00") + "Z"


def format_iso_time(seconds: float) -> str:
    """Format seconds since the epoch as a UTC time of ISO 8601.

    >>> format_iso_time(0)
    '1970-01-01T00:00:00Z'
    """
    return format_time(seconds).replace(" ", "T", 1)


def escape_json(body: bytes) -> str:
    r"""Escape unprintable characters of JSON, so that no name can move the cursor or reverse a line.

    >>> escape_json('["\x9b\u202e\xe9"]'.encode())
    '["\\u009b\\u202e\xe9"]'
    """
    return _NOT_ASCII.sub(_escape, body.decode())


def _escape(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]
