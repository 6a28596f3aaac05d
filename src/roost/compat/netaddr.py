"""A stand-in for netaddr, for plug-ins on machines without it: addresses and networks."""

import ipaddress


class AddrFormatError(Exception):
    """A text is not a valid address or network."""


class IPAddress:
    """An IP address."""

    def __init__(self, addr: object) -> None:
        try:
            self.address = ipaddress.ip_address(str(addr))
        except ValueError as error:
            raise AddrFormatError(str(error)) from None

    def __str__(self) -> str:
        return str(self.address)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IPAddress) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)


class IPNetwork:
    """A network, given by any of its addresses."""

    def __init__(self, addr: object) -> None:
        try:
            self.network = ipaddress.ip_network(str(addr), strict=False)
        except ValueError as error:
            raise AddrFormatError(str(error)) from None

    def __str__(self) -> str:
        return str(self.network)

    def __contains__(self, address: object) -> bool:
        ip = address if isinstance(address, IPAddress) else IPAddress(address)
        return ip.address in self.network
