"""Drawings of boxes and arrows as SVG: text in the repository, without a font, a script or an address."""

import textwrap
from html import escape

_STYLE = """
    text { font: 14px system-ui, sans-serif; fill: #1c2733 }
    .title { font-weight: 600 }
    .note { font-size: 12px; fill: #51606e }
    .label { paint-order: stroke; stroke: #ffffff; stroke-width: 5px; stroke-linejoin: round }
    .mono { font-family: ui-monospace, monospace; font-size: 13px }
    .line { stroke: #51606e; stroke-width: 1.5; fill: none }
    .back { stroke: #b3541e; stroke-dasharray: 5 4 }
    .card { fill: #ffffff; stroke: #d5dce3 }
    .plain { fill: #f3f6f9; stroke: #9aa8b5 }
    .roost { fill: #e4f0ff; stroke: #3d7cc9 }
    .part { fill: #ffffff; stroke: #3d7cc9 }
    .data { fill: #eaf6ea; stroke: #4c9a52 }
    .host { fill: #fff3df; stroke: #c98a2b }
    .area { fill: none; stroke: #9aa8b5; stroke-dasharray: 4 4 }
"""
_LINE_PX = 18
# A generous width of a character, so that a text that fits here fits with every font.
_TITLE_PX, _NOTE_PX = 8.2, 6.8
# The width of a character of a terminal.
_CELL_PX = 7.8
_WRAP = {"subsequent_indent": "  ", "drop_whitespace": False, "replace_whitespace": False}


class Drawing:
    """A picture of a size in pixels; the parts are drawn in the order of the calls."""

    def __init__(self, width: int, height: int, *, title: str, description: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
            f"  <title>{escape(title)}</title>",
            f"  <desc>{escape(description)}</desc>",
            f"  <style>{_STYLE}  </style>",
            '  <marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
            '    <path d="M0 0 L8 4 L0 8 z" fill="#51606e"/>',
            "  </marker>",
            f'  <rect class="card" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10"/>',
        ]

    def box(self, at: tuple[int, int], size: tuple[int, int], kind: str, *texts: str) -> None:
        """Draw a box with a title and lines of notes, in its middle."""
        (x, y), (width, height) = at, size
        self._parts.append(f'  <rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>')
        top = y + (height - _LINE_PX * len(texts)) / 2 + 13
        for number, text in enumerate(texts):
            assert len(text) * (_NOTE_PX if number else _TITLE_PX) <= width, f"too long for its box: {text}"
            self.text((x + width // 2, round(top + number * _LINE_PX)), text, "note" if number else "title", "middle")

    def area(self, at: tuple[int, int], size: tuple[int, int], kind: str, title: str) -> None:
        """Draw a box with its title at the top, for other boxes inside."""
        self.box(at, size, kind)
        self.text((at[0] + 12, at[1] + 20), title, "title")

    def text(self, at: tuple[int, int], text: str, kind: str = "note", anchor: str = "start") -> None:
        """Draw a line of text."""
        self._parts.append(
            f'  <text class="{kind}" x="{at[0]}" y="{at[1]}" text-anchor="{anchor}">{escape(text)}</text>'
        )

    def arrow(self, *points: tuple[int, int], kind: str = "") -> None:
        """Draw an arrow along points."""
        path = " L".join(f"{x} {y}" for x, y in points)
        self._parts.append(f'  <path class="{f"line {kind}".strip()}" d="M{path}" marker-end="url(#end)"/>')

    def line(self, *points: tuple[int, int]) -> None:
        """Draw a line along points."""
        self._parts.append(f'  <path class="line" d="M{" L".join(f"{x} {y}" for x, y in points)}"/>')

    def svg(self) -> str:
        """Return the picture."""
        return "\n".join([*self._parts, "</svg>"]) + "\n"


def terminal(text: str, *, columns: int = 112) -> str:
    """Return a picture of a terminal with a text; a line that begins with ``$`` is a command."""
    lines = [part for line in text.rstrip("\n").split("\n") for part in textwrap.wrap(line, columns, **_WRAP) or [""]]
    width, height = round(columns * _CELL_PX) + 40, len(lines) * _LINE_PX + 56
    size = f'viewBox="0 0 {width} {height}" width="{width}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" xml:space="preserve">',
        f"  <title>{escape(lines[0])}</title>",
        f"  <desc>{escape(text)}</desc>",
        "  <style>text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #d7dee6; white-space: pre }",
        "  .command { fill: #8fd694; font-weight: 600 } .result { fill: #ffcf70 }</style>",
        f'  <rect width="{width}" height="{height}" rx="10" fill="#1c2733"/>',
        *(f'  <circle cx="{x}" cy="20" r="6" fill="#51606e"/>' for x in (24, 44, 64)),
    ]
    for number, line in enumerate(lines):
        kind = "command" if line.startswith("$ ") else "result" if line.startswith(("refused:", "any one of")) else ""
        # The length keeps columns aligned in every font.
        length = f' textLength="{round(len(line) * _CELL_PX)}" lengthAdjust="spacingAndGlyphs"' if line else ""
        label = f' class="{kind}"' if kind else ""
        parts.append(f'  <text x="20" y="{52 + number * _LINE_PX}"{label}{length}>{escape(line)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
