"""The login of section ``neutron`` at the start of the service."""

from queue import Queue

import msgspec
import pytest

from roost.compat.ini import read_ini
from roost.errors import BadSettings
from roost.model.settings.roost_settings import Settings
from roost.nova.messages.request_spec import RequestedNetwork
from roost.nova.neutron.network_lookup import open_lookup

ROUTED = msgspec.convert({"scheduler": {"query_placement_for_routed_network_aggregates": True}}, Settings)
NO_ADDRESS = "[neutron]\nauth_type = none\nendpoint_override = http://127.0.0.1:9\nhttp_retries = 1\n"


class Outcome:
    """Keeps the failure of a lookup."""

    def __init__(self):
        self.failures = Queue()

    def refuse(self, failure):
        """Keep the failure."""
        self.failures.put(failure)


@pytest.fixture
def failure_of(tmp_path):
    """Return a function that looks up a network, and returns the text of the failure."""

    def failure_of(lines, settings):
        conf = tmp_path / "nova.conf"
        conf.write_text(f"[DEFAULT]\n{lines}")
        lookup = open_lookup(read_ini(conf), settings, timeout_s=5, elapsed_s=lambda: 0.0)
        outcome = Outcome()
        try:
            lookup.submit([RequestedNetwork(network="n")], outcome)
            return outcome.failures.get(timeout=30).message
        finally:
            lookup.stop()

    return failure_of


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("", r"\[neutron\] auth_type: is missing"),
        ("[neutron]\nauth_type = password\n", r"\[neutron\]: cannot be used to log in: .*auth_url"),
    ],
)
def test_routed_networks_need_a_login_at_the_start(failure_of, lines, problem):
    with pytest.raises(BadSettings, match=problem):
        failure_of(lines, ROUTED)


def test_later_settings_need_the_login_for_each_request(failure_of):
    assert "[neutron] auth_type: is missing" in failure_of("", Settings())


def test_neutron_need_not_answer_at_the_start(failure_of):
    assert failure_of(NO_ADDRESS, ROUTED).startswith("Neutron cannot be used: http://127.0.0.1:9: ")
