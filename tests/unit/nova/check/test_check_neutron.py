"""The check of Neutron, at a small Keystone and a small Neutron."""

import pytest

from roost.compat.ini import read_ini
from roost.nova.check.check_neutron import check_neutron
from tests.support.servers.keystones import SERVICE_PASSWORD, keystone
from tests.support.servers.neutrons import neutron


@pytest.fixture
def network():
    with neutron() as records:
        yield records


@pytest.fixture
def check(tmp_path):
    """Return a function that returns level and text of the findings for a section ``neutron``."""

    def check(auth_url, more="", *, password=SERVICE_PASSWORD):
        path = tmp_path / "nova.conf"
        path.write_text(
            f"[neutron]\nauth_type = password\nauth_url = {auth_url}\nusername = nova\npassword = {password}\n"
            f"project_name = service\nuser_domain_name = Default\nproject_domain_name = Default\n{more}\n"
        )
        findings = list(check_neutron(read_ini(path), timeout_s=5))
        assert all(each.advice for each in findings if each.level != "ok")
        assert {each.part for each in findings} == {"neutron"}
        assert password not in str(findings)
        return [(each.level, each.found) for each in findings]

    return check


def test_good_login_is_one_finding(network, check):
    network.token = "service-token"
    with keystone(network=network.url) as (auth_url, _):
        assert check(auth_url) == [("ok", f"Neutron at {network.url} answers; login works")]


def test_missing_extension_is_a_warning(network, check):
    network.extensions = ["subnet"]
    with keystone(network=network.url) as (auth_url, _):
        assert check(auth_url)[1:] == [("warning", "it has no extension segment, so no network is routed")]


def test_refused_login_is_an_error(network, check):
    with keystone(network=network.url) as (auth_url, _):
        ((level, found),) = check(auth_url, password="geheim")
    assert level == "error"
    assert "[neutron]: cannot log in: Keystone at " in found
    assert network.requests == []


def test_missing_endpoint_is_an_error(check):
    with keystone() as (auth_url, _):
        ((level, found),) = check(auth_url, "region_name = r")
    assert level == "error"
    assert found.endswith("finds no endpoint of the service network in region r, internal or public, in the catalog")


def test_silent_keystone_is_an_error(check):
    ((level, found),) = check("http://127.0.0.1:9/v3")
    assert (level, found) == (
        "error",
        "Neutron cannot be used: Keystone at http://127.0.0.1:9/v3 does not answer: ConnectFailure",
    )


def test_neutron_that_refuses_the_token_is_an_error(network, check):
    network.token = "another"
    with keystone(network=network.url) as (auth_url, _):
        assert check(auth_url) == [("error", "Neutron answers /extensions with status 401")]


def test_silent_neutron_is_an_error(network, check):
    network.is_silent = True
    with keystone(network=network.url) as (auth_url, _):
        ((level, found),) = check(auth_url, "http_retries = 1")
    assert level == "error"
    assert found.startswith(f"Neutron cannot be used: {network.url}: ")


def test_missing_login_is_an_error(tmp_path):
    (tmp_path / "nova.conf").write_text("[DEFAULT]\n")
    (finding,) = check_neutron(read_ini(tmp_path / "nova.conf"), timeout_s=5)
    assert finding.level == "error"
    assert "[neutron] auth_type: is missing" in finding.found
