"""Text that a terminal shows as it is."""

from collections.abc import Iterable
from datetime import UTC, datetime


def shown(text: str) -> str:
    r"""Return one line with what cannot be printed spelt out, so that no name moves a cursor or forges a line.

    >>> shown("a\x1b[2J\nb")
    'a\\x1b[2J\\nb'
    """
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def paragraph(lines: Iterable[str]) -> str:
    """Return lines as text, each ended by a newline, whatever the names in them hold."""
    return "".join(f"{shown(line)}\n" for line in lines)


def moment(seconds: float) -> str:
    """Return seconds since the epoch as a time of UTC."""
    try:
        found = datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, ValueError):  # Clocks may say anything, and no calendar goes on for ever.
        return f"{seconds:,.0f} s after 1970"
    return found.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00") + "Z"
