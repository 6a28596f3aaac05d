"""Text that a terminal shows as it is."""

from collections.abc import Iterable


def shown(text: str) -> str:
    r"""Return one line with what cannot be printed spelt out, so that no name moves a cursor or forges a line.

    >>> shown("a\x1b[2J\nb")
    'a\\x1b[2J\\nb'
    """
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def paragraph(lines: Iterable[str]) -> str:
    """Return lines as text, each ended by a newline, whatever the names in them hold."""
    return "".join(f"{shown(line)}\n" for line in lines)
