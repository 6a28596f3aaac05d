"""The terminal of standard output: its width, and colours."""

import os
import shutil
import sys
from typing import Literal

Style = Literal["bold", "red", "yellow"]

_CODES: dict[Style, str] = {"bold": "1", "red": "1;31", "yellow": "33"}
# Words of states that need attention. All other states have no colour.
_STATE_STYLES: dict[str, Style] = {
    **dict.fromkeys(("ERROR", "down", "forced down", "failed", "error", "refused", "gone", "lost"), "red"),
    **dict.fromkeys(("disabled", "stays", "stayed", "cancelled", "DELETED"), "yellow"),
}


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int | None:
    """Return the width of the terminal, or ``$COLUMNS``; None: standard output is not a terminal, and has no limit."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def has_colour() -> bool:
    """Return whether to use colours: on a terminal, unless ``$NO_COLOR`` is set or the terminal is dumb."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: Style) -> str:
    """Return a text in a style, if the terminal has colours. The text must be escaped already."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and has_colour() else text


def paint_states(text: str) -> str:
    """Return comma-separated states, with a colour for each state that needs attention."""
    return ", ".join(paint(word, style) if (style := _STATE_STYLES.get(word)) else word for word in text.split(", "))


def cell_width(text: str) -> int:
    """Return the number of terminal columns of a text; letters of East Asia take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def shorten(text: str, width: int) -> str:
    """Shorten a text to a width, with an ellipsis at its end.

    >>> shorten("a long name", 7)
    'a long…'
    """
    if cell_width(text) <= width:
        return text
    while text and cell_width(text) > width - 1:
        text = text[:-1]
    return f"{text}…"
