"""The login of section ``placement`` of nova.conf, at a small Keystone."""

import ssl
from contextlib import contextmanager

import pytest

from roost.app.remote_placement import connect_remote
from roost.client.keystone_login import LoginOptions, tls_context
from roost.compat.ini import read_ini
from roost.errors import BadSettings, PlacementGone
from roost.model.settings.placement_settings import Placement
from roost.model.settings.roost_settings import Settings
from roost.nova.service_login import read_login_options
from tests.support.fleets.products import roost
from tests.support.servers.keystones import SERVICE_PASSWORD, keystone
from tests.support.servers.scripted_server import scripted_server

VERSIONS = (200, {"versions": [{"max_version": "1.39"}]})
# Each of the two connections reads the versions.
START = (VERSIONS, VERSIONS)
NO_PROVIDERS = (200, {"resource_providers": []})


def write_conf(folder, auth_url, *, password=SERVICE_PASSWORD, more=""):
    path = folder / "nova.conf"
    path.write_text(
        f"""[placement]
auth_type = password
auth_url = {auth_url}
username = nova
password = {password}
project_name = service
user_domain_name = Default
project_domain_name = Default
{more}
"""
    )
    return path


def connect_at(conf, url="catalog", **environ):
    settings = Settings(placement=Placement(remote_url=url, remote_timeout_s=10.0))
    return connect_remote(settings, {"ROOST_NOVA_CONF": str(conf), **environ})


@contextmanager
def connect(conf, url="catalog", **environ):
    """Connect to the Placement of a nova.conf."""
    follower = connect_at(conf, url, **environ)
    try:
        yield follower
    finally:
        follower.stop()


@pytest.mark.parametrize("url", ["catalog", None])
def test_login_of_nova_conf_is_used_for_a_url_and_for_the_catalog(tmp_path, url):
    with scripted_server(*START, NO_PROVIDERS) as (address, requests), keystone(address) as (auth_url, server):
        with connect(write_conf(tmp_path, auth_url, more="region_name = r"), url or address) as follower:
            assert follower.read_specs() == []
        assert [path for _, path, _ in requests] == ["/below/", "/below/", "/below/resource_providers"]
        assert server.logins == 1


def test_refused_token_is_renewed_once(tmp_path):
    answers = (*START, (401, None), NO_PROVIDERS, (401, None), (401, None))
    with scripted_server(*answers) as (address, requests), keystone(address) as (auth_url, server):
        with connect(write_conf(tmp_path, auth_url)) as follower:
            assert follower.read_specs() == []
            assert server.logins == 2
            with pytest.raises(PlacementGone, match="refuses this client: status 401; give its user the role"):
                follower.read_specs()
        assert len(requests) == 6


def test_token_of_the_environment_has_precedence_for_a_url(tmp_path):
    with scripted_server(*START) as (address, requests), keystone(address) as (auth_url, server):
        with connect(write_conf(tmp_path, auth_url), address, ROOST_PLACEMENT_TOKEN="admin"):
            pass
        assert (len(requests), server.logins) == (2, 0)


def test_override_has_precedence_over_the_catalog(tmp_path):
    with scripted_server(*START) as (address, requests), keystone("http://127.0.0.1:9") as (auth_url, _):
        with connect(write_conf(tmp_path, auth_url, more=f"endpoint_override = {address}")):
            pass
        assert len(requests) == 2


def test_wrong_password_is_one_sentence_without_it(tmp_path):
    with keystone("http://127.0.0.1:9") as (auth_url, _):
        conf = write_conf(tmp_path, auth_url, password="geheim")
        with (
            pytest.raises(BadSettings, match=r"refuses the user and password of .*: status 401$") as caught,
            connect(conf),
        ):
            pass
        result = roost(
            "up", "--nova-conf", conf, "--placement", "catalog", "--listen", "127.0.0.1:0", "--data", tmp_path,
            cwd=tmp_path,
        )  # fmt: skip
    assert "geheim" not in str(caught.value) + result.stderr
    lines = [line for line in result.stderr.splitlines() if "have no effect" not in line]
    assert (result.returncode, len(lines)) == (3, 1), result.stderr


def test_keystone_that_stops_is_an_outage(tmp_path):
    with scripted_server(*START, (401, None)) as (address, _):
        with keystone(address) as (auth_url, _):
            follower = connect_at(write_conf(tmp_path, auth_url))
        with pytest.raises(PlacementGone, match=r"Keystone at http://127.0.0.1:.* does not answer: ConnectFailure"):
            follower.read_specs()
        follower.stop()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            "region_name = elsewhere",
            "endpoint of the service placement in region elsewhere, internal or public",
        ),
        ("valid_interfaces = admin", "finds no endpoint of the service placement, admin, in the catalog"),
        ("insecure = perhaps", "insecure: must be true or false, got 'perhaps'"),
        ("timeout = soon", "timeout: must be a whole number of seconds above 0"),
        ("cafile = /nowhere.pem", "cafile, certfile or keyfile cannot be used"),
    ],
)
def test_wrong_option_is_one_sentence(tmp_path, more, sentence):
    with keystone("http://127.0.0.1:9") as (auth_url, _), pytest.raises(BadSettings, match=sentence):
        connect_at(write_conf(tmp_path, auth_url, more=more))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("auth_type = passwort", "must name a plug-in of keystoneauth1, got 'passwort'"),
        ("auth_type = password", "cannot be used to log in: .*auth_url"),
        ("region_name = r", "needs auth_type in section .placement. of a nova.conf"),
    ],
)
def test_missing_login_is_one_sentence(tmp_path, text, sentence):
    (tmp_path / "nova.conf").write_text(f"[placement]\n{text}\n")
    with pytest.raises(BadSettings, match=sentence):
        connect_at(tmp_path / "nova.conf")


def test_login_without_authentication_needs_no_keystone(tmp_path):
    with scripted_server(*START) as (address, requests):
        (tmp_path / "nova.conf").write_text(f"[placement]\nauth_type = none\nendpoint_override = {address}\n")
        with connect(tmp_path / "nova.conf"):
            pass
        assert len(requests) == 2


def test_options_can_be_in_another_section_and_have_older_names(tmp_path):
    path = tmp_path / "nova.conf"
    path.write_text("[placement]\nauth_section = login\nos_interface = public\n[login]\nauth_plugin = password\n")
    options = read_login_options(read_ini(path), "placement", service_type="placement")
    assert (options.auth_type, options.valid_interfaces) == ("password", ("public",))
    assert options.where == f"{path}: [login]"


def test_text_form_has_no_password():
    options = LoginOptions(where="x: [placement]", auth_type="password", values={"password": "geheim"})
    assert repr(options) == "LoginOptions(x: [placement], auth_type='password')"


@pytest.mark.parametrize(("insecure", "mode"), [(False, ssl.CERT_REQUIRED), (True, ssl.CERT_NONE)])
def test_certificates_are_verified_unless_insecure_is_on(insecure, mode):
    context = tls_context(LoginOptions(where="x", auth_type="none", insecure=insecure))
    assert (context.verify_mode, context.check_hostname) == (mode, not insecure)
