"""Requests to a small Neutron, with the login of section ``neutron``."""

from contextlib import contextmanager

import pytest

from roost.compat.ini import read_ini
from roost.errors import BadSettings, Unavailable
from roost.nova.neutron.neutron_api import NeutronAccess, NeutronRefusal, Port
from roost.nova.neutron.neutron_options import read_neutron_options
from tests.support.servers.keystones import SERVICE_PASSWORD, keystone
from tests.support.servers.neutrons import neutron

NETWORK, SUBNET, PORT, SEGMENT = "a-network", "a-subnet", "a-port", "a-segment"


def always():
    return True


def read(folder, text):
    path = folder / "nova.conf"
    path.write_text(f"[neutron]\n{text}\n")
    return read_neutron_options(read_ini(path))


@pytest.fixture
def network():
    with neutron() as records:
        yield records


@pytest.fixture
def connect(tmp_path, network):
    """Return a function that connects to the Neutron without a login."""

    @contextmanager
    def connect(more=""):
        text = f"auth_type = none\nendpoint_override = {network.url}\n{more}"
        api = NeutronAccess(read(tmp_path, text), timeout_s=10).connect()
        try:
            yield api
        finally:
            api.close()

    return connect


def test_port_has_the_subnet_of_its_first_address(network, connect):
    network.add_port("p1", NETWORK, SUBNET, "other", vnic_type="remote-managed")
    network.add_port("p2", NETWORK)
    with connect() as api:
        assert api.port("p1", has_time=always) == Port(network=NETWORK, subnet=SUBNET, is_remote_managed=True)
        assert api.port("p2", has_time=always) == Port(network=NETWORK, subnet=None, is_remote_managed=False)
        with pytest.raises(NeutronRefusal) as caught:
            api.port("p3", has_time=always)
        assert caught.value.status == 404


def test_segments_of_a_network_are_those_of_its_subnets_on_all_pages(network, connect):
    for number, segment in enumerate(("s1", "s1", None, "s2", "s3")):
        network.add_subnet(f"n{number}", NETWORK, segment)
    network.add_subnet("other", "other", "s9")
    network.page_size = 2
    with connect() as api:
        assert api.segments_of_network(NETWORK, has_time=always) == ("s1", "s2", "s3")
        assert api.segments_of_network("flat", has_time=always) == ()
        assert api.segment_of_subnet("n3", has_time=always) == "s2"
        assert api.segment_of_subnet("n2", has_time=always) is None
        assert network.count("/subnets?") == 4
        assert [api.has_extension(alias) for alias in ("segment", "other")] == [True, False]


def test_answer_503_is_repeated_as_often_as_the_option_says(network, connect):
    network.statuses["/subnets"] = 503
    with connect("http_retries = 2") as api, pytest.raises(NeutronRefusal, match="answers /subnets with status 503"):
        api.segments_of_network(NETWORK, has_time=always)
    assert network.count("/subnets") == 3


def test_no_answer_is_an_outage_after_the_retries(network, connect):
    network.is_silent = True
    with connect("http_retries = 0") as api, pytest.raises(Unavailable, match="Neutron cannot be used: http://127"):
        api.segment_of_subnet(SUBNET, has_time=always)
    assert network.count("/subnets") == 2


def test_no_request_is_sent_when_the_time_is_over(network, connect):
    with connect() as api, pytest.raises(Unavailable, match="the time for its answers is over"):
        api.segment_of_subnet(SUBNET, has_time=lambda: False)
    assert network.requests == []


@pytest.mark.parametrize("body", [{}, {"port": 5}, {"port": {"network_id": ""}}, []])
def test_malformed_answer_is_an_outage(network, connect, body):
    network.answer = lambda _: (200, body)
    with connect() as api, pytest.raises(Unavailable, match="its answer"):
        api.port(PORT, has_time=always)


LOGIN = "auth_type = password\nusername = nova\nproject_name = service\nuser_domain_name = D\nproject_domain_name = D\n"


def test_token_and_address_come_from_keystone(tmp_path, network):
    network.token = "service-token"
    network.add_subnet(SUBNET, NETWORK, SEGMENT)
    with keystone(network=network.url) as (auth_url, server):
        text = f"{LOGIN}auth_url = {auth_url}\npassword = {SERVICE_PASSWORD}\nregion_name = r"
        api = NeutronAccess(read(tmp_path, text), timeout_s=10).connect()
        assert api.segment_of_subnet(SUBNET, has_time=always) == SEGMENT
        assert server.logins == 1
        # A refused token is renewed once.
        network.token = "another"
        with pytest.raises(NeutronRefusal, match="status 401"):
            api.segment_of_subnet(SUBNET, has_time=always)
        assert server.logins == 2
        api.close()


def test_refused_login_and_missing_endpoint_are_sentences_about_neutron(tmp_path):
    with keystone() as (auth_url, _):
        options = read(tmp_path, f"{LOGIN}auth_url = {auth_url}\npassword = geheim")
        with pytest.raises(Unavailable, match=r"^Neutron cannot be used: Keystone .* refuses the user") as caught:
            NeutronAccess(options, timeout_s=10).connect()
        assert "geheim" not in str(caught.value)
        options = read(tmp_path, f"{LOGIN}auth_url = {auth_url}\npassword = {SERVICE_PASSWORD}")
        with pytest.raises(BadSettings, match="finds no endpoint of the service network, internal or public"):
            NeutronAccess(options, timeout_s=10).connect()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("region_name = r", "auth_type: is missing: .scheduler. query_placement_for_routed_network_aggregates needs"),
        ("auth_type = none\nhttp_retries = some", "http_retries: must be a whole number, got 'some'"),
        ("auth_type = $nothing", "refers to .nothing, which is not set"),
    ],
)
def test_wrong_option_is_one_sentence(tmp_path, text, problem):
    with pytest.raises(BadSettings, match=problem):
        read(tmp_path, text)


def test_missing_section_is_one_sentence(tmp_path):
    (tmp_path / "nova.conf").write_text("[DEFAULT]\n")
    with pytest.raises(BadSettings, match=r"nova.conf: \[neutron\] auth_type: is missing"):
        read_neutron_options(read_ini(tmp_path / "nova.conf"))


def test_number_of_retries_has_a_limit(tmp_path):
    assert read(tmp_path, "auth_type = none\nhttp_retries = 1000").retries == 10
