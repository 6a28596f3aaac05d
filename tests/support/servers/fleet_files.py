"""Decodes the file of a fleet, by its description in docs/api-v1.md alone, and applies changes to it."""

import json
import struct
import time

_TYPES = {"uint8": "B", "uint16": "H", "uint32": "I"}


class FleetColumns:
    """The decoded file of a fleet: its head, and its columns as lists."""

    def __init__(self, body):
        magic, version, hosts, head_bytes = struct.unpack_from("<4sIII", body)
        assert (magic, version) == (b"RFS1", 1)
        self.hosts, self.head = hosts, json.loads(body[16 : 16 + head_bytes])
        self.columns, at = {}, 16 + head_bytes
        for column in self.head["columns"]:
            assert at % 4 == 0
            code = _TYPES[column["type"]]
            self.columns[column["name"]] = list(struct.unpack_from(f"<{hosts}{code}", body, at))
            size = hosts * struct.calcsize(code)
            at += size + (-size % 4)
        assert at == len(body)

    @property
    def shares(self):
        """The shares, one list per class."""
        return [self.columns[f"share:{name}"] for name in self.head["classes"]]

    @property
    def changing(self):
        """The columns that changes contain."""
        return [*self.shares, self.columns["instances"], self.columns["state"]]

    def apply(self, change):
        """Apply the data of an event ``fleet``; return whether the file must be loaded again instead."""
        if change.get("reload"):
            return True
        assert change["generation"] == self.head["generation"]
        for index, *values in change["hosts"]:
            for column, value in zip(self.changing, values, strict=True):
                column[index] = value
        return False

    def place_of(self, index):
        """Return the zone of a host, and the names of its aggregates."""
        place = self.head["places"][self.columns["place"][index]]
        names = [self.head["aggregates"][each]["name"] for each in place["aggregates"]]
        return self.head["zones"][place["zone"]], names


def load_columns(server, *, position=0, **headers):
    """Return the columns of the fleet of a server, at a position or a later one."""
    path = f"/v1/fleet/columns?position={position}"
    until_s = time.monotonic() + 60.0
    status = 409
    while status == 409 and time.monotonic() < until_s:  # Another worker reads the changes a moment later.
        status, _, body = server.ask("GET", path, headers={"x-auth-token": "admin", **headers})
    assert status == 200, body
    return FleetColumns(body)


def follow_until(follower, columns, is_done, *, server=None, patience_s=60.0):
    """Apply the changes of a stream of events to columns until they fulfil a condition.

    Orders to load the columns again are followed at ``server``; None: there must be none.
    """
    until_s = time.monotonic() + patience_s
    while not is_done(columns):
        assert time.monotonic() < until_s, columns.columns
        ((last_id, name, data),) = follower.events(1)
        if name == "fleet":
            assert last_id is None
            if columns.apply(data):
                assert server is not None, "no reload was expected"
                vars(columns).update(vars(load_columns(server, position=data["position"])))
