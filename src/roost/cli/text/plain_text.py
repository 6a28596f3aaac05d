"""Text that a terminal shows as it is."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime

# Beside these JSON has line ends of its own, and nothing else, as it is.
_NOT_ASCII = re.compile(r"[^\n -~]")


def escape_text(text: str) -> str:
    r"""Return one line with what cannot be printed spelt out, so that no name moves a cursor or forges a line.

    >>> shown("a\x1b[2J\nb")
    'a\\x1b[2J\\nb'
    """
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def paragraph(lines: Iterable[str]) -> str:
    """Return lines as text, each ended by a newline, whatever the names in them hold."""
    return "".join(f"{escape_text(line)}\n" for line in lines)


def format_time(seconds: float) -> str:
    """Return seconds since the epoch as a time of UTC."""
    try:
        time = datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, ValueError):  # Clocks may say anything, and no calendar goes on for ever.
        return f"{seconds:,.0f} s after 1970"
    return time.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00") + "Z"


def escape_json(body: bytes) -> str:
    r"""Return JSON with what cannot be printed as escapes, so that no name in it moves a cursor or turns a line around.

    >>> json_text('["\x9b\u202e\xe9"]'.encode())
    '["\\u009b\\u202e\xe9"]'
    """
    return _NOT_ASCII.sub(_escape, body.decode())


def _escape(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]
