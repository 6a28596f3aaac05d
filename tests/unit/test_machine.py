"""The address of this machine, and its service manager."""

import socket

import pytest

from roost.machine import find_address, report_ready

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


@pytest.mark.parametrize("is_abstract", [False, True])
def test_readiness_is_sent_to_the_socket_of_the_service_manager(is_abstract, tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"@{tmp_path}" if is_abstract else str(tmp_path / "notify")
        manager.bind(name.replace("@", "\0") if is_abstract else name)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        report_ready()
        assert manager.recv(64) == b"READY=1"


@pytest.mark.parametrize("address", [None, "", "/nonexistent/notify"])
def test_process_without_a_service_manager_reports_nothing(address, monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if address is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    report_ready()
