import pytest

from roost.api.allowed_hosts import AllowedHosts
from roost.api.http import Request
from roost.api.problems import Problem
from roost.model.settings.placement_settings import Placement as Settings


def refused(settings, **headers):
    """Give the status with which a request is refused; 0: it is not."""
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
def test_addresses_and_localhost_are_names_of_every_server(host):
    assert refused(Settings(), host=host) == 0


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8778", "127.0.0.1.evil.example", "localhost.evil.example", "[::1].x", "1:2:x"],
)
def test_another_name_is_refused(host):
    assert refused(Settings(), host=host) == 421


def test_a_name_that_settings_list_or_listen_on_is_accepted():
    settings = Settings(listen="Control.example:80", allowed_hosts=("roost.example",))
    assert [refused(settings, host=host) for host in ("control.EXAMPLE", "roost.example:1", "x.example")] == [0, 0, 421]
    assert refused(Settings(allowed_hosts=("*",)), host="x.example") == 0


def test_a_client_of_http_1_0_needs_no_name():
    assert refused(Settings()) == 0


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 0), ("none", 0)])
def test_pages_of_other_sites_are_refused(site, status):
    assert refused(Settings(), host="localhost", sec_fetch_site=site) == status


def test_a_page_of_an_origin_that_is_let_in_may_ask():
    settings = Settings(cors_allowed_origin=("https://a.example",))
    ask = {"host": "localhost", "sec_fetch_site": "cross-site"}
    assert refused(settings, **ask, origin="https://a.example") == 0
    assert refused(settings, **ask, origin="https://b.example") == 403
    assert refused(Settings(cors_allowed_origin=("*",)), **ask, origin="https://b.example") == 0


def test_credentials_protect_every_other_server():
    assert AllowedHosts.from_settings(Settings(auth_strategy="tokens")) is None
    assert AllowedHosts.from_settings(Settings(auth_strategy="keystone")) is None
