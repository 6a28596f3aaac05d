"""The address of this machine."""

import socket

import pytest

from roost.machine import find_address

# A connection to it needs the broadcast option, so it acts as a network without a route.
NOWHERE = (socket.AF_INET, "255.255.255.255")


@pytest.mark.parametrize(
    ("destinations", "address"),
    [
        ([(socket.AF_INET, "127.0.0.9")], "127.0.0.1"),
        ([NOWHERE, (socket.AF_INET, "127.0.0.9")], "127.0.0.1"),
        ([NOWHERE], "127.0.0.1"),
        ([], "127.0.0.1"),
    ],
)
def test_address_is_of_the_first_route_or_the_loopback(destinations, address):
    assert find_address(destinations) == address


def test_machine_without_ipv4_has_an_ipv6_address():
    if not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.connect(("::1", 53))
    except OSError:
        pytest.skip("this machine has no IPv6")
    assert find_address([NOWHERE, (socket.AF_INET6, "::1")]) == "::1"
