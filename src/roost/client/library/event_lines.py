"""The parser of server-sent events."""

from typing import Any, NamedTuple

import msgspec

from roost.errors import Unavailable

_LINE_MAX = 64 * 2**20  # bytes; a longer line is malformed


class Event(NamedTuple):
    """One event, or the notice of lost events."""

    id: str
    event_type: str
    body: dict[str, Any]


class EventLines:
    """Reads events from the parts of a stream, which may end anywhere."""

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, str] = {}

    def feed(self, data: bytes) -> list[Event | None]:
        """Return the events that are complete now; None for the start of the stream and for heartbeats.

        Raises:
            Unavailable: the stream is malformed.
        """
        found = list[Event | None]()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not line:
                found.append(_decode_event(self._fields))
                self._fields = {}
            elif not line.startswith(b":"):  # Comments keep the connection open.
                name, _, value = line.decode(errors="replace").partition(": ")
                self._fields[name] = value
        if len(self._rest) > _LINE_MAX:
            raise Unavailable(f"a line of the events has more than {_LINE_MAX:,} bytes")
        return found


def _decode_event(fields: dict[str, str]) -> Event | None:
    if "event" not in fields:
        return None
    try:
        body = msgspec.json.decode(fields.get("data", "{}"), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Unavailable(f"an event is malformed: {error}") from None
    return Event(fields.get("id", ""), fields["event"], body)
