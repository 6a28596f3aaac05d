import pytest

from roost.api.access.allowed_hosts import AllowedHosts
from roost.api.http import Request
from roost.api.problems import Problem
from roost.model.settings.placement_settings import Placement as Settings


def refusal_status(settings, **headers):
    """Return the status of the refusal; 0: the request is accepted."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    hosts = AllowedHosts.from_settings(settings)
    try:
        assert hosts is not None
        hosts.check(Request(method="GET", path="/", headers=names))
    except Problem as problem:
        return problem.status
    return 0


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8778", "[::1]", "[::1]:8778", "10.1.2.3", "localhost", "LOCALHOST:8778", "localhost.", ""],
)
def test_addresses_and_localhost_are_always_accepted(host):
    assert refusal_status(Settings(), host=host) == 0


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8778", "127.0.0.1.evil.example", "localhost.evil.example", "[::1].x", "1:2:x"],
)
def test_unknown_host_name_is_refused(host):
    assert refusal_status(Settings(), host=host) == 421


def test_host_name_from_the_settings_is_accepted():
    settings = Settings(listen="Control.example:80", allowed_hosts=("roost.example",))
    assert [refusal_status(settings, host=host) for host in ("control.EXAMPLE", "roost.example:1", "x.example")] == [
        0,
        0,
        421,
    ]
    assert refusal_status(Settings(allowed_hosts=("*",)), host="x.example") == 0


def test_request_without_a_host_header_is_accepted():
    assert refusal_status(Settings()) == 0


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 0), ("none", 0)])
def test_requests_of_other_sites_are_refused(site, status):
    assert refusal_status(Settings(), host="localhost", sec_fetch_site=site) == status


def test_request_of_an_allowed_origin_is_accepted():
    settings = Settings(cors_allowed_origin=("https://a.example",))
    ask = {"host": "localhost", "sec_fetch_site": "cross-site"}
    assert refusal_status(settings, **ask, origin="https://a.example") == 0
    assert refusal_status(settings, **ask, origin="https://b.example") == 403
    assert refusal_status(Settings(cors_allowed_origin=("*",)), **ask, origin="https://b.example") == 0


def test_server_with_authentication_checks_no_host():
    assert AllowedHosts.from_settings(Settings(auth_strategy="tokens")) is None
    assert AllowedHosts.from_settings(Settings(auth_strategy="keystone")) is None
