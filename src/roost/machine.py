"""The machine's own time, chance and address."""

import os
import socket
import struct
import time
from collections.abc import Sequence

_RANDOM_BLOCK = 512
# Public resolvers. Only the route to them matters: the connect of a datagram socket sends nothing.
_FAR_AWAY = ((socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:4860:4860::8888"))
_LOOPBACK = "127.0.0.1"
_PORT = 53
# What the first byte behind the time becomes in a uuid of version 7, and the first of its last eight.
_VERSION_7 = bytes(0x70 | byte & 0x0F for byte in range(256))
_VARIANT = bytes(0x80 | byte & 0x3F for byte in range(256))


class SystemClock:
    """The machine's time."""

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def elapsed_s(self) -> float:
        """Return seconds of a clock that never goes back."""
        return time.perf_counter()


class SystemRandom:
    """Randomness of the operating system, fetched in blocks.

    Uuids are of version 7: their first 48 bits are the time, so new rows go to the end of an index.
    """

    def __init__(self) -> None:
        self._seeds: list[int] = []
        self._tails: list[bytes] = []  # of uuids: all behind the time
        self._process = 0

    def seed(self) -> int:
        """Return a fresh seed, 0..2**62 - 1."""
        if not self._seeds or self._process != os.getpid():
            self._refill()
        return self._seeds.pop()

    def uuids(self, count: int) -> list[bytes]:
        """Return fresh uuids, 16 bytes each, that sort by the time they were made."""
        stamp = int(time.time() * 1000).to_bytes(6, "big")
        uuids: list[bytes] = []
        while len(uuids) < count:
            if not self._tails or self._process != os.getpid():
                self._refill()
            missing = count - len(uuids)
            uuids += [stamp + tail for tail in self._tails[-missing:]]
            del self._tails[-missing:]
        return uuids

    def _refill(self) -> None:
        # A forked process must not go on with what its parent drew.
        self._process = os.getpid()
        self._seeds = [number >> 2 for (number,) in struct.iter_unpack("=Q", os.urandom(8 * _RANDOM_BLOCK))]
        tails = bytearray(os.urandom(10 * _RANDOM_BLOCK))
        tails[0::10] = tails[0::10].translate(_VERSION_7)
        tails[2::10] = tails[2::10].translate(_VARIANT)
        self._tails = [bytes(tails[at : at + 10]) for at in range(0, len(tails), 10)]


def find_address(destinations: Sequence[tuple[socket.AddressFamily, str]] = _FAR_AWAY) -> str:
    """Return the address of this machine on its route to the first destination that has a route.

    No packet is sent and no name is looked up. Without any route the address is 127.0.0.1.

    Args:
        destinations: families and addresses, in order of preference; by default one IPv4 and one IPv6 address of the
            public network, so the default route decides.

    Source:
        nova/conf/netconf.py, default of ``my_ip``, which has no IPv6.
    """
    for family, destination in destinations:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((destination, _PORT))
                address: str = probe.getsockname()[0]
                return address
        except OSError:
            continue  # There is no such route, or the machine does not have this family.
    return _LOOPBACK
