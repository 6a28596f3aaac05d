"""The file of a fleet: one column per property of hosts, and their names. ``docs/api-v1.md`` describes the format."""

import struct
from collections.abc import Callable, Iterator, Mapping
from threading import Lock

import msgspec
import numpy as np

from roost.api.transfer.compression import gzip_body
from roost.engine.columns.types import AnyArray
from roost.engine.survey.fleet_snapshot import FleetSnapshot

MAGIC, VERSION = b"RFS1", 1
# Little-endian: magic, version, number of hosts, bytes of the JSON head.
_START = struct.Struct("<4sIII")
_ALIGNMENT = 4


class FleetFile:
    """A snapshot in bytes, encoded and compressed on first use, by any thread.

    Args:
        snapshot: the fleet.
        before: an earlier file; None: the first one.
    """

    def __init__(self, snapshot: FleetSnapshot, before: "FleetFile | None" = None) -> None:
        self.generation = snapshot.layout.generation
        self.position = snapshot.position
        self.columns: Encoded = Encoded(lambda: encode(snapshot))
        is_same, names = before is not None and before.generation == self.generation, snapshot.layout.names
        # Later files share the names, so they must not keep this snapshot.
        self.names: Encoded = before.names if before is not None and is_same else Encoded(lambda: names)


class Encoded:
    """Bytes, also compressed; each form is made on first use, by any thread.

    Args:
        build: returns the bytes.
    """

    def __init__(self, build: Callable[[], bytes]) -> None:
        self._build, self._lock = build, Lock()
        self._plain: bytes | None = None
        self._short: bytes | None = None

    def read(self, *, is_compressed: bool) -> bytes:
        """Return the bytes, plain or as gzip."""
        with self._lock:
            if self._plain is None:
                self._plain = self._build()
            if not is_compressed:
                return self._plain
            if self._short is None:
                self._short = gzip_body(self._plain)
            return self._short


def encode(snapshot: FleetSnapshot) -> bytes:
    """Return the columns of a fleet as a file."""
    layout = snapshot.layout
    head = {
        "generation": layout.generation,
        "position": snapshot.position,
        "classes": layout.capacities.classes,
        "zones": layout.places.zones,
        "aggregates": [{"uuid": uuid, "name": name} for uuid, name in layout.places.aggregates],
        "places": [{"zone": each.zone, "aggregates": each.aggregates} for each in layout.places.places],
        "racks": layout.racks.names,
        "kinds": layout.capacities.kinds,
    }
    return encode_columns(head, dict(_list_columns(snapshot)), host_count=len(snapshot))


def encode_columns(head: Mapping[str, object], columns: Mapping[str, AnyArray], *, host_count: int) -> bytes:
    """Return columns as a file.

    Args:
        head: the fields of the head, without the list of columns.
        columns: by name: uint8, uint16 or uint32, shape (hosts,) each.
        host_count: number of hosts.
    """
    shown = [{"name": name, "type": column.dtype.name} for name, column in columns.items()]
    text = msgspec.json.encode({**head, "columns": shown})
    text += b" " * (-len(text) % _ALIGNMENT)
    parts = [_START.pack(MAGIC, VERSION, host_count, len(text)), text]
    for column in columns.values():
        body = column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()
        parts += [body, b"\0" * (-len(body) % _ALIGNMENT)]
    return b"".join(parts)


def _list_columns(snapshot: FleetSnapshot) -> Iterator[tuple[str, AnyArray]]:
    layout = snapshot.layout
    for name, share in zip(layout.capacities.classes, snapshot.shares, strict=True):
        yield f"share:{name}", np.ascontiguousarray(share)
    yield "instances", snapshot.instances
    yield "state", snapshot.states
    yield "reported_s", snapshot.reported_s
    yield "place", layout.places.of_host
    yield "rack", layout.racks.of_host
    yield "kind", layout.capacities.kind_of_host
