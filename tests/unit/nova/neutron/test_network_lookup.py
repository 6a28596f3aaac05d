"""Decisions on requests with networks, which Roost looks up in a small Neutron."""

import time
from contextlib import contextmanager
from queue import Queue

import msgspec
import pytest

from roost.compat.ini import read_ini
from roost.model.host import HostFacts
from roost.model.provider import ProviderSpec
from roost.model.settings.roost_settings import Settings
from roost.nova.messages.request_spec import RequestedNetwork
from roost.nova.neutron.network_lookup import FoundNetwork, NetworkLookup
from roost.nova.neutron.neutron_api import NeutronAccess, neutron_outage
from roost.nova.neutron.neutron_options import read_neutron_options
from roost.placement.placement_service import Placement
from roost.placement.write_plan import Plan
from roost.placement.writes.labels import plan_aggregates
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, merge_fleets
from tests.support.nova_conductors import conductor, hosts_of, reason_of
from tests.support.nova_messages import destination, nova_object, port_device, requested_networks
from tests.support.servers.neutrons import neutron

ME, OTHER = uuid_named("me"), uuid_named("other")
NET, FLAT, SUBNET, PORT = (uuid_named(name) for name in ("net", "flat", "subnet", "port"))
WEST, EAST = uuid_named("segment west"), uuid_named("segment east")
ROUTED = msgspec.convert({"scheduler": {"query_placement_for_routed_network_aggregates": True}}, Settings)


@pytest.fixture
def network():
    with neutron() as records:
        yield records


@pytest.fixture
def lookup(network, tmp_path):
    """Yield a lookup at the small Neutron."""
    conf = tmp_path / "nova.conf"
    conf.write_text(f"[neutron]\nauth_type = none\nendpoint_override = {network.url}\nhttp_retries = 0\n")
    access = NeutronAccess(read_neutron_options(read_ini(conf)), timeout_s=10)
    found = NetworkLookup(access.connect, elapsed_s=time.monotonic)
    yield found
    found.stop()


@contextmanager
def routed_cloud(lookup, *, settings=ROUTED):
    """Open a conductor of three hosts: h0 reaches the segment west, h1 both segments, h2 none."""
    facts = HostFacts(cell=uuid_named("cell"))
    fleet = merge_fleets(*(host(f"h{number}", facts=facts, VCPU=8, MEMORY_MB=4096) for number in range(3)))
    with conductor(fleet, settings=settings, networks=lookup) as nova:
        for segment, aggregate, names in ((WEST, "west", ("h0", "h1")), (EAST, "east", ("h1",))):
            add_segment(nova, segment, uuid_named(aggregate))
            for name in names:
                join(nova, uuid_named(name), uuid_named(aggregate))
        yield nova


def add_segment(nova, segment, *aggregates):
    """Create the provider of a segment, as Neutron does."""
    spec = ProviderSpec(uuid=segment, name=f"Neutron segment {segment}")
    nova.serving.run(lambda current: Placement(current).create_providers([spec]))
    for aggregate in aggregates:
        join(nova, segment, aggregate)


def join(nova, provider, aggregate):
    """Add a provider to one more aggregate."""

    def plan(current):
        row = current.state.providers.row_of_uuid[provider]
        numbers = current.state.membership.labels_of(row)
        uuids = {current.state.aggregates.name_of(number) for number in numbers} | {aggregate}
        return Plan(answer=None, writes=plan_aggregates(current, row, uuids=sorted(uuids), generation=None))

    nova.serving.run(plan)


def hosts_for(nova, uuid, *networks, **fields):
    """Return the chosen host and its alternates, as a set."""
    ((*hosts,),) = hosts_of(nova.select(uuid, requested_networks=requested_networks(*networks), **fields))
    return set(hosts)


def failure_of(nova, *networks, **fields):
    failure = nova.refuse(ME, requested_networks=requested_networks(*networks), **fields)
    return failure["class"], failure["module"], failure["message"]


def test_network_permits_the_hosts_of_all_its_segments(network, lookup):
    network.add_subnet("n1", NET, WEST)
    network.add_subnet("n2", NET, EAST)
    network.add_subnet("n3", NET, None)
    network.add_subnet("n4", FLAT, None)
    with routed_cloud(lookup) as nova:
        assert hosts_for(nova, ME, {"network_id": NET}) == {"h0", "h1"}
        assert hosts_for(nova, OTHER, {"network_id": FLAT}) == {"h0", "h1", "h2"}


def test_every_network_must_be_reachable(network, lookup):
    network.add_subnet("n1", NET, WEST)
    network.add_subnet("n2", "other", EAST)
    with routed_cloud(lookup) as nova:
        assert hosts_for(nova, ME, {"network_id": NET}, {"network_id": "other"}, {"network_id": NET}) == {"h1"}
    assert network.count("/subnets?") == 2


def test_port_with_an_address_permits_the_hosts_of_its_segment(network, lookup):
    network.add_subnet(SUBNET, NET, EAST)
    network.add_subnet("n2", NET, WEST)
    network.add_port(PORT, NET, SUBNET)
    with routed_cloud(lookup) as nova:
        assert hosts_for(nova, ME, {"network_id": NET, "port_id": PORT}) == {"h1"}
        assert hosts_for(nova, OTHER, {"network_id": NET, "port_id": PORT}) == {"h1"}
    assert (network.count("/ports"), network.count(f"/subnets/{SUBNET}")) == (2, 1)


def test_port_without_an_address_permits_the_hosts_of_its_network(network, lookup):
    network.add_subnet("n1", NET, WEST)
    network.add_port(PORT, NET)
    with routed_cloud(lookup) as nova:
        assert hosts_for(nova, ME, {"port_id": PORT}) == {"h0", "h1"}


def test_move_with_the_ports_of_its_instance_stays_in_their_segments(network, lookup):
    network.add_subnet(SUBNET, NET, WEST)
    network.add_port(PORT, NET, SUBNET)
    cell = nova_object("CellMapping", "1.1", uuid=uuid_named("cell"))
    fields = {"requested_destination": destination(cell=cell), "ignore_hosts": ["h0"]}
    with routed_cloud(lookup) as nova:
        assert hosts_for(nova, ME, {"network_id": NET, "port_id": PORT}, **fields) == {"h1"}


def test_aggregates_of_networks_are_required_beside_those_of_the_destination(network, lookup):
    network.add_subnet("n1", NET, WEST)
    fields = {"requested_destination": destination(aggregates=[uuid_named("east")])}
    with routed_cloud(lookup) as nova:
        assert hosts_for(nova, ME, {"network_id": NET}, **fields) == {"h1"}


def test_segment_in_several_aggregates_permits_the_hosts_of_each(network, lookup):
    both = uuid_named("segment both")
    network.add_subnet("n1", NET, both)
    with routed_cloud(lookup) as nova:
        add_segment(nova, both, uuid_named("nowhere"), uuid_named("east"))
        assert hosts_for(nova, ME, {"network_id": NET}) == {"h1"}


def test_neutron_gets_no_request_without_networks_or_without_the_option(network, lookup):
    network.add_subnet("n1", NET, EAST)
    with routed_cloud(lookup) as nova:
        for number, networks in enumerate((None, requested_networks(), requested_networks({"network_id": "auto"}))):
            ((_, *others),) = hosts_of(nova.select(uuid_named(str(number)), requested_networks=networks))
            assert len(others) == 2
        fields = {"scheduler_hints": {"_nova_check_type": ["rebuild"]}, "force_hosts": ["h2"]}
        nova.select(requested_networks=requested_networks({"network_id": NET}), **fields)
    with routed_cloud(lookup, settings=Settings()) as nova:
        assert len(hosts_for(nova, ME, {"network_id": NET, "port_id": PORT})) == 3
    assert network.requests == []


def test_remote_managed_port_requires_a_trait_even_without_neutron(network, lookup):
    devices = nova_object("InstancePCIRequests", "1.1", requests=[port_device(PORT, remote_managed="True")])
    with routed_cloud(lookup, settings=Settings()) as nova:
        # The search finds no candidate, so the filter of devices does not refuse hosts.
        refused = nova.refuse(ME, requested_networks=requested_networks({"port_id": PORT}), pci_requests=devices)
        assert reason_of(refused) == ""
    assert network.requests == []


def test_remote_managed_port_of_neutron_requires_a_trait(network, lookup):
    network.add_port(PORT, FLAT, vnic_type="remote-managed")
    with routed_cloud(lookup) as nova:
        assert reason_of(nova.refuse(ME, requested_networks=requested_networks({"port_id": PORT}))) == ""
        network.add_port(PORT, FLAT, vnic_type="direct")
        assert len(hosts_for(nova, ME, {"port_id": PORT})) == 3


def test_segment_without_an_aggregate_is_the_refusal_of_nova(network, lookup):
    lost = uuid_named("segment lost")
    network.add_subnet("n1", NET, lost)
    network.add_subnet(SUBNET, NET, lost)
    network.add_port(PORT, NET, SUBNET)
    text = "Scheduling failed: Aggregates not found for the"
    with routed_cloud(lookup) as nova:
        name, module, message = failure_of(nova, {"network_id": NET})
        assert (name, module) == ("ResourceProviderAggregateRetrievalFailed", "nova.exception")
        assert message == f"Failed to get aggregates for resource provider with UUID {lost}"
        add_segment(nova, lost)
        networks = ({"network_id": NET}, {"port_id": PORT})
        refusals = [nova.refuse(ME, requested_networks=requested_networks(each)) for each in networks]
        assert [reason_of(each) for each in refusals] == [f"{text} network {NET}", f"{text} subnet {SUBNET}"]
        assert nova.vcpus() == {"h0": 0, "h1": 0, "h2": 0}


@pytest.mark.parametrize("status", [400, 404, 500])
def test_error_for_subnets_is_a_request_without_a_host(network, lookup, status):
    network.statuses["/subnets"] = status
    with routed_cloud(lookup) as nova:
        refusal = nova.refuse(ME, requested_networks=requested_networks({"network_id": NET}))
        assert reason_of(refusal) == f"Scheduling failed: Aggregates not found for the network {NET}"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (404, ("PortNotFound", "nova.exception")),
        (401, ("NeutronAdminCredentialConfigurationInvalid", "nova.exception")),
        (403, ("Forbidden", "nova.exception")),
        (500, ("NovaException", "nova.exception")),
    ],
)
def test_error_for_a_port_has_the_exception_of_nova(network, lookup, status, expected):
    network.statuses["/ports"] = status
    with routed_cloud(lookup) as nova:
        assert failure_of(nova, {"port_id": PORT})[:2] == expected


def test_silent_neutron_is_a_fault_until_it_answers_again(network, lookup):
    network.add_subnet("n1", NET, EAST)
    network.is_silent = True
    with routed_cloud(lookup) as nova:
        name, module, message = failure_of(nova, {"network_id": NET})
        # Conductors do not import this class, so they raise RemoteError.
        assert (name, module) == ("ConnectFailure", "keystoneauth1.exceptions.connection")
        assert message.startswith(f"Neutron cannot be used: {network.url}: ")
        network.is_silent = False
        assert hosts_for(nova, ME, {"network_id": NET}) == {"h1"}


def test_thread_goes_on_after_an_outcome_that_takes_no_result(network, lookup):
    class Broken:
        def take_networks(self, found):
            raise RuntimeError(found)

    network.add_subnet("n1", NET, EAST)
    for _ in range(20):  # more than there are threads
        lookup.submit([RequestedNetwork(network=NET)], Broken())
    outcome = Outcome()
    lookup.submit([RequestedNetwork(network=NET)], outcome)
    assert outcome.results.get(timeout=30) == (FoundNetwork(name=f"network {NET}", segments=(EAST,)),)


def test_requests_without_networks_go_on_while_neutron_is_silent(network, lookup):
    network.add_subnet("n1", NET, EAST)
    network.gate.clear()
    outcome = Outcome()
    with routed_cloud(lookup) as nova:
        for _ in range(20):  # more than there are threads
            lookup.submit([RequestedNetwork(network=NET)], outcome)
        assert len(hosts_of(nova.select(OTHER))[0]) == 3
        assert outcome.results.empty()
        network.gate.set()
        expected = (FoundNetwork(name=f"network {NET}", segments=(EAST,)),)
        assert [outcome.results.get(timeout=30) for _ in range(20)] == [expected] * 20


class Outcome:
    """Keeps the results of lookups."""

    def __init__(self):
        self.results = Queue()

    def take_networks(self, found):
        """Keep the networks."""
        self.results.put(found)

    def refuse(self, failure):
        """Keep the text of the failure."""
        self.results.put(failure.message)


def scripted_lookup(network, **limits):
    """Return a lookup with a virtual clock, one thread, and an API that waits for the gate of the network."""
    clock = [0.0]

    class Api:
        def segments_of_network(self, uuid, *, has_time):
            network.gate.wait(30)
            if not has_time():
                raise neutron_outage("the time is over")
            return (uuid,)

        def close(self):
            pass

    return NetworkLookup(Api, elapsed_s=lambda: clock[0], threads_max=1, **limits), clock


def test_request_beyond_the_limit_of_the_queue_fails_at_once(network):
    network.gate.clear()
    lookup, _ = scripted_lookup(network, waiting_max=1)
    outcomes = [Outcome() for _ in range(3)]
    try:
        for outcome in outcomes:
            lookup.submit([RequestedNetwork(network=NET)], outcome)
        found = [each.results for each in outcomes if not each.results.empty()]
        assert found[0].get() == "Neutron cannot be used: 1 requests wait for it already"
    finally:
        network.gate.set()
        lookup.stop()


def test_request_that_waited_too_long_ends_without_an_answer(network):
    late, clock = scripted_lookup(network, request_s=60)
    outcome = Outcome()
    network.gate.clear()
    late.submit([RequestedNetwork(network=NET)], outcome)
    clock[0] = 61.0
    network.gate.set()
    assert outcome.results.get(timeout=30) == "Neutron cannot be used: the time is over"
    late.stop()


def test_unexpected_error_ends_its_request_and_not_the_thread(network):
    lookup, _ = scripted_lookup(network)
    outcome = Outcome()
    try:
        lookup.submit([RequestedNetwork(port=PORT)], outcome)  # The API has no ports.
        assert outcome.results.get(timeout=30) == "internal error of the server; its log has the cause"
        lookup.submit([RequestedNetwork(network=NET)], outcome)
        assert outcome.results.get(timeout=30) == (FoundNetwork(name=f"network {NET}", segments=(NET,)),)
    finally:
        lookup.stop()


def test_remembered_subnets_have_a_limit(network, lookup, monkeypatch):
    monkeypatch.setattr("roost.nova.neutron.network_lookup._SUBNETS_MAX", 1)
    outcome = Outcome()
    for number in range(2):
        network.add_subnet(f"n{number}", NET, WEST)
        network.add_port(f"p{number}", NET, f"n{number}")
    for number in (0, 0, 1, 0):
        lookup.submit([RequestedNetwork(port=f"p{number}")], outcome)
        assert outcome.results.get(timeout=30) == (FoundNetwork(name=f"subnet n{number}", segments=(WEST,)),)
    assert network.count("/subnets/") == 3
