"""The columns of the fleet, and the names of its hosts: long bodies, from a thread beside the deciding one."""

import asyncio
from collections.abc import Callable, Mapping

from roost.api.http import Receive, Response, Send
from roost.api.transfer.compression import accepts_gzip, add_vary
from roost.api.v1.call import Call
from roost.api.v1.fleet.fleet_file import Encoded, FleetFile
from roost.api.v1.fleet.fleet_port import FleetPort
from roost.errors import Conflict

BYTES, TEXT = "application/octet-stream", "text/plain; charset=utf-8"
GENERATION_HEADER = "x-roost-generation"
_PART_BYTES = 256 * 2**10
# Further readings before a refusal: the first one may have begun before the request.
_READINGS = 2
# The names of a generation never change.
_IMMUTABLE = "private, max-age=31536000, immutable"


def show(call: Call) -> Response:
    """Show all hosts as a binary file of columns: share of each resource, instances, state, place, rack and kind.

    docs/api-v1.md describes the format of the file. The header ``x-roost-generation`` has its generation.
    ``GET /events`` with ``fleet`` has later changes. Fails with 409 if this process does not reach the given position
    in time: repeat the request.
    """
    wanted: int = call.query.position or 0

    def choose(file: FleetFile) -> Encoded:
        if file.position < wanted:
            raise Conflict(f"the columns are at position {file.position} here, not yet at {wanted}: repeat the request")
        return file.columns

    return _respond(call, choose, content_type=BYTES, cache_control="no-store")


def list_names(call: Call) -> Response:
    """List the names of the nodes, one in a line, in the order of the columns of a generation.

    The header ``x-roost-generation`` has the generation. Fails with 409 for another generation than the present one:
    load the columns again. Without a generation, the response has the present names.
    """
    wanted: str | None = call.query.generation

    def choose(file: FleetFile) -> Encoded:
        if wanted is not None and file.generation != wanted:
            raise Conflict(f"the fleet has generation {file.generation} now, not {wanted[:64]!r}: load its columns")
        return file.names

    return _respond(call, choose, content_type=TEXT, cache_control="no-store" if wanted is None else _IMMUTABLE)


def require_fleet(call: Call) -> FleetPort:
    """Return the snapshots of the fleet.

    Raises:
        Conflict: this process has none.
    """
    if call.fleet is None:
        text = "this process has no snapshots of the fleet: send the request to a server"
        raise Conflict(text, problem_type="not-supported")
    return call.fleet


def _respond(call: Call, choose: Callable[[FleetFile], Encoded], *, content_type: str, cache_control: str) -> Response:
    headers = {"content-type": content_type, "cache-control": cache_control}
    add_vary(headers)
    is_compressed = accepts_gzip(call.request.headers.get("accept-encoding"))
    if is_compressed:
        headers["content-encoding"] = "gzip"
    body = FleetBody(require_fleet(call), choose, is_compressed=is_compressed, stall_s=call.events.limits.stall_s)
    return Response(headers=headers, stream=body)


class FleetBody:
    """The body of a response after a wait for a snapshot, without the deciding thread.

    Args:
        fleet: the snapshots.
        choose: returns the part of a snapshot for the client, or raises an error.
        is_compressed: whether to send gzip.
        stall_s: seconds until a stalled client is disconnected.
    """

    def __init__(
        self, fleet: FleetPort, choose: Callable[[FleetFile], Encoded], *, is_compressed: bool, stall_s: float
    ) -> None:
        self._fleet, self._choose, self._is_compressed, self._stall_s = fleet, choose, is_compressed, stall_s
        self._body = b""

    async def open(self) -> Mapping[str, str]:
        """Wait for a snapshot, encode it, and return its generation as a header.

        Raises:
            Unavailable: the snapshots failed.
            Conflict: the client has another generation, or needs later columns.
        """
        generation, chosen = await self._choose_part()
        self._body = await asyncio.to_thread(chosen.read, is_compressed=self._is_compressed)
        return {GENERATION_HEADER: generation}

    async def _choose_part(self) -> tuple[str, Encoded]:
        """Return a generation and the part of its snapshot; the client may know a newer one, from another process.

        Raises:
            Conflict: the client has another generation, or needs later columns. The last reading began after its
                request.
        """
        file = await self._fleet.newest()
        for _ in range(_READINGS):
            try:
                return file.generation, self._choose(file)
            except Conflict:
                file = await self._fleet.newest(is_fresh=True)
        return file.generation, self._choose(file)

    def close(self) -> None:
        """Do nothing."""

    async def run(self, receive: Receive, send: Send, *, abort: Callable[[], None]) -> None:
        """Send the body; disconnect a stalled client."""
        try:
            for start in range(0, len(self._body), _PART_BYTES):
                async with asyncio.timeout(self._stall_s):
                    part = self._body[start : start + _PART_BYTES]
                    await send({"type": "http.response.body", "body": part, "more_body": True})
        except TimeoutError:
            abort()
            return
        await send({"type": "http.response.body", "body": b""})
