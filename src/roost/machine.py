"""Clock, randomness, network address and service manager of this machine."""

import os
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress

_RANDOM_BLOCK = 512
# Public resolvers, used only to look up a route: connecting a datagram socket sends no packet.
_FAR_AWAY = ((socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:4860:4860::8888"))
_LOOPBACK = "127.0.0.1"
_PORT = 53
# Byte translations that set the version (first byte after the time) and the variant (ninth byte) of a version 7 uuid.
_VERSION_7 = bytes(0x70 | byte & 0x0F for byte in range(256))
_VARIANT = bytes(0x80 | byte & 0x3F for byte in range(256))


class SystemClock:
    """The clocks of this machine."""

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def elapsed_s(self) -> float:
        """Return seconds of a monotonic clock."""
        return time.perf_counter()


class SystemRandom:
    """Random numbers of the operating system, fetched in blocks.

    Uuids have version 7: they begin with the time, 48 bits, so new rows go to the end of an index.
    """

    def __init__(self) -> None:
        self._seeds: list[int] = []
        self._tails: list[bytes] = []  # of uuids: the 10 bytes after the time
        self._process = 0

    def seed(self) -> int:
        """Return a fresh seed, 0..2**62 - 1."""
        if not self._seeds or self._process != os.getpid():
            self._refill()
        return self._seeds.pop()

    def uuids(self, count: int) -> list[bytes]:
        """Return new uuids, 16 bytes each, in order of creation time."""
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
        # A forked process must not repeat the numbers of its parent.
        self._process = os.getpid()
        self._seeds = [number >> 2 for (number,) in struct.iter_unpack("=Q", os.urandom(8 * _RANDOM_BLOCK))]
        tails = bytearray(os.urandom(10 * _RANDOM_BLOCK))
        tails[0::10] = tails[0::10].translate(_VERSION_7)
        tails[2::10] = tails[2::10].translate(_VARIANT)
        self._tails = [bytes(tails[at : at + 10]) for at in range(0, len(tails), 10)]


def find_address(destinations: Sequence[tuple[socket.AddressFamily, str]] = _FAR_AWAY) -> str:
    """Return the local address for the first destination with a route.

    Send no packet, and resolve no name. Without a route, return 127.0.0.1.

    Args:
        destinations: families and addresses, in order of preference; by default one public IPv4 and one public IPv6
            address, so the default route decides.

    Source:
        nova/conf/netconf.py, default of ``my_ip``; Nova tries only IPv4.
    """
    for family, destination in destinations:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((destination, _PORT))
                address: str = probe.getsockname()[0]
                return address
        except OSError:
            continue  # No route, or no support for this address family.
    return _LOOPBACK


def report_ready() -> None:
    """Report to systemd that this process is ready, if a unit with ``Type=notify`` started it.

    Source:
        the protocol of sd_notify(3).
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # A name that begins with @ is an abstract address. A variable that another service left behind does no harm.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.connect(address.replace("@", "\0", 1) if address.startswith("@") else address)
        manager.send(b"READY=1")
