"""Storage of the fake drivers: the guests of each host, and guests in transit between hosts."""

from collections.abc import Callable, Collection, Mapping

import msgspec
from msgspec.structs import replace

from roost.compute.drivers.fake.guests import Arrival, FakeGuest, HostRecord, MemoryShelf, read_record


class GuestShelf(MemoryShelf):
    """A shelf in memory; an agent may die before and after each of its writes."""

    def __init__(self) -> None:
        super().__init__()
        self.kills: dict[str, Callable[[], None]] = {}  # by host; may raise ``ProcessKilled``
        self.changes = 0
        self._cache: dict[str, tuple[bytes, HostRecord]] = {}

    def keep(self, host: str, guests: bytes) -> None:
        """Store the guests of a host."""
        self.kills[host]()
        super().keep(host, guests)
        self.changes += 1
        self.kills[host]()

    def part(self, host: str, guests: bytes, *, address: str, uuid: str, arrival: bytes) -> None:
        """Move a running guest to another host in one step: it is always on exactly one host."""
        self.kills[host]()
        super().part(host, guests, address=address, uuid=uuid, arrival=arrival)
        self.changes += 1
        self.kills[host]()

    def send(self, address: str, uuid: str, arrival: bytes) -> None:
        """Send a guest's data to an address."""
        super().send(address, uuid, arrival)
        self.changes += 1

    def drop_image(self, image: str) -> None:
        """Delete an image."""
        super().drop_image(image)
        self.changes += 1

    def lose(self, host: str, uuid: str) -> None:
        """Remove a guest, without the knowledge of its driver: an agent process that runs must end."""
        record = read_record(self.load(host), host)
        record.guests.pop(uuid, None)
        record.replaced.pop(uuid, None)
        super().keep(host, msgspec.json.encode(record))
        self.changes += 1

    def guests(self, host: str) -> Mapping[str, FakeGuest]:
        """Return the guests of a host, including those that arrived by live migration."""
        guests = self.record_of(host)
        arrived = {uuid: guest for uuid, guest in guests.coming.items() if self._has_arrived(host, uuid)}
        return {**guests.guests, **{uuid: replace(guest, state="running") for uuid, guest in arrived.items()}}

    def incoming_guests(self, host: str) -> Collection[str]:
        """Return the uuids of guests on their way to a host; the host holds resources for them."""
        return [uuid for uuid in self.record_of(host).coming if not self._has_arrived(host, uuid)]

    def _has_arrived(self, host: str, uuid: str) -> bool:
        arrival = self.load_arrival(self.address(host), uuid)
        return arrival is not None and arrival != b"" and msgspec.json.decode(arrival, type=Arrival).is_running

    def record_of(self, host: str) -> HostRecord:
        """Return the stored record of a host."""
        body = self.load(host)
        cached = self._cache.get(host)
        if cached is None or cached[0] != body:
            cached = self._cache[host] = (body or b"", read_record(body, host))
        return cached[1]
