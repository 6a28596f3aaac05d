"""The two formats of a log line: JSON for programs, text for people."""

import json
import re
from datetime import UTC, datetime

import msgspec

# Values that need no quotes in the text format: no character looks like the end of the value.
_PLAIN = re.compile(r"[\w.:/@+,;*%()\[\]-]+", re.ASCII)
_INDENT = b"    | "


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log."""

    time_s: float  # seconds since the epoch
    level: str
    logger: str  # name of the module
    event: str
    fields: dict[str, object]

    def with_repetitions(self, count: int) -> "Line":
        """Return the same line with the number of repetitions that were only counted."""
        return msgspec.structs.replace(self, fields={**self.fields, "repeated": count})


def as_json(line: Line) -> bytes:
    """Return a line as JSON; characters below 32 are escaped, so it is one line."""
    head = {"time": _iso(line.time_s), "level": line.level, "logger": line.logger, "event": line.event}
    values = {**head, **line.fields}
    try:
        return msgspec.json.encode(values, enc_hook=str) + b"\n"
    except UnicodeEncodeError:  # Half of a surrogate pair: the other encoder escapes it.
        return json.dumps(values, default=str).encode() + b"\n"


def as_text(line: Line) -> bytes:
    """Return a line as text: time, level, logger, event and fields; a traceback follows on indented lines."""
    traceback = str(line.fields.get("traceback") or "")
    pairs = (
        f"{name}={_value(value)}" for name, value in line.fields.items() if value is not None and name != "traceback"
    )
    head = " ".join([_iso(line.time_s), f"{line.level.upper():<7}", line.logger, line.event, *pairs])
    rows = (_INDENT + _escape(row).encode("ascii") + b"\n" for row in traceback.splitlines())
    return head.encode() + b"\n" + b"".join(rows)


def _iso(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _value(value: object) -> str:
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=not text.isprintable())


def _escape(row: str) -> str:
    return row if row.isascii() and row.isprintable() else json.dumps(row)[1:-1]
