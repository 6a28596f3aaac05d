"""Requests with networks: nova-scheduler and Roost read the same small Neutron, and decide the same."""

import json
from contextlib import contextmanager

import pytest

from tests.nova.nova_clouds import SceneOfTest, new_uuid
from tests.nova.nova_schedulers import open_duel
from tests.support.nova_messages import destination, nova_object, port_device, requested_networks
from tests.support.servers.neutrons import neutron

pytestmark = pytest.mark.differential

OWN = "nova.exception"


@pytest.fixture(scope="module")
def network():
    with neutron() as records:
        yield records


@pytest.fixture(scope="module")
def duel(network, shared_broker, tmp_path_factory):
    """Yield a cloud that Roost serves, and a caller of nova-scheduler on the same cloud."""
    options = {
        "scheduler": {"query_placement_for_routed_network_aggregates": "true"},
        "neutron": {"auth_type": "none", "endpoint_override": network.url, "http_retries": 1},
    }
    with open_duel(shared_broker, tmp_path_factory, "neutron", options) as found:
        yield found


class RoutedScene(SceneOfTest):
    """Two segments and three hosts: h0 is in west, h1 in west and east, h2 in none.

    The network ``both`` has both segments; ``west`` and ``east`` have one each.
    """

    def __init__(self, cloud, caller, network):
        self.caller, self.network = caller, network
        (cell,) = cloud.database.cells
        super().__init__(cloud, cell, count=0)
        for number in range(3):
            self.add_host(f"h{number}", waits=False, traits=["OWNER_NOVA"])
        self.hosts = sorted(self.nodes)
        cloud.wait_for_hosts(*self.hosts)
        names = ("both", "west", "east", "flat", "lost", "bare", "west_subnet", "east_subnet", "bare_subnet")
        self.ids = {name: new_uuid() for name in names}
        west, east, bare = (self.add_segment() for _ in range(3))
        self.join(west, self.hosts[0], self.hosts[1])
        self.join(east, self.hosts[1])
        subnets = (
            ("both", west), ("both", east), ("both", None), ("west", west), ("east", east), ("flat", None),
            ("lost", new_uuid()),  # Its segment has no provider.
            ("bare", bare),  # Its segment has no aggregate.
        )  # fmt: skip
        for name, segment in subnets:
            network.add_subnet(new_uuid(), self.ids[name], segment)
        for name, segment, of in (("west", west, "both"), ("east", east, "both"), ("bare", bare, "bare")):
            network.add_subnet(self.ids[f"{name}_subnet"], self.ids[of], segment)

    def add_segment(self):
        """Create the provider of a segment; return its uuid."""
        segment = new_uuid()
        self.cloud.placement("POST", "/resource_providers", {"name": f"Neutron segment {segment}", "uuid": segment})
        return segment

    def join(self, segment, *hosts):
        """Put a segment and its hosts into an aggregate."""
        aggregate = new_uuid()
        for provider in (segment, *(self.nodes[host] for host in hosts)):
            self.cloud.add_to_aggregate(provider, aggregate)

    def of(self, name):
        """Return the request of a network."""
        return {"network_id": self.ids[name]}

    def port(self, network, *subnets, **more):
        """Create a port; return its request."""
        port = new_uuid()
        self.network.add_port(port, self.ids[network], *(self.ids[f"{each}_subnet"] for each in subnets), **more)
        return {"network_id": self.ids[network], "port_id": port}

    def outcomes(self, *networks, **fields):
        """Return the hosts or the failure of nova-scheduler, and those of Roost."""
        fields = self._fields(requested_networks=requested_networks(*networks), **fields)
        return [self._outcome(caller, fields) for caller in (self.caller, self.cloud.caller)]

    def _outcome(self, caller, fields):
        number = new_uuid()
        reply = caller.wait(self.cloud.send(number, caller=caller, **fields))[-1]
        if reply["failure"] is None:
            self.cloud.release(number)
            return {self.hosts.index(each["nova_object.data"]["service_host"]) for each in reply["result"][0]}
        failure = json.loads(reply["failure"])
        text = failure["message"] if failure["module"] == OWN else ""  # Other errors become RemoteError.
        return failure["class"], failure["module"], text

    def both(self, *networks, **fields):
        """Return the equal outcome of both schedulers."""
        theirs, ours = self.outcomes(*networks, **fields)
        assert ours == theirs
        return ours


@pytest.fixture(scope="module")
def scene(duel, network):
    return RoutedScene(*duel, network)


@contextmanager
def status_of(network, path, status):
    """Answer a path with an error during the block."""
    network.statuses = {path: status}
    try:
        yield
    finally:
        network.statuses = {}


def test_both_choose_the_hosts_of_the_segments(scene):
    cases = [
        (["flat"], {0, 1, 2}),
        (["both"], {0, 1}),
        (["east"], {1}),
        (["west", "east"], {1}),
        (["flat", "west"], {0, 1}),
        ([], {0, 1, 2}),
    ]
    for names, expected in cases:
        assert scene.both(*map(scene.of, names)) == expected, names
    assert scene.both({"network_id": "auto"}) == {0, 1, 2}


def test_both_read_the_subnet_of_a_port(scene):
    assert scene.both(scene.port("both")) == {0, 1}
    assert scene.both(scene.port("both", "east")) == {1}
    assert scene.both(scene.port("both", "west", "east")) == {0, 1}
    assert scene.both(scene.port("both", "west"), scene.of("east")) == {1}


def test_both_keep_a_move_in_the_segment_of_its_port(scene):
    cell = nova_object("CellMapping", "1.1", **scene.cloud.cell_row(scene.cell))
    fields = {"requested_destination": destination(cell=cell, allow_cross_cell_move=False)}
    assert scene.both(scene.port("both", "west"), ignore_hosts=[scene.hosts[0]], **fields) == {1}


def test_both_require_the_trait_for_a_remote_managed_port(scene):
    port = scene.port("flat", vnic_type="remote-managed")
    device = port_device(port["port_id"], physical_network="p", remote_managed="True")
    devices = nova_object("InstancePCIRequests", "1.1", requests=[device])
    assert scene.both(port, pci_requests=devices) == ("NoValidHost", OWN, "No valid host was found. ")


def test_both_refuse_segments_without_an_aggregate(scene):
    text = "No valid host was found. Scheduling failed: Aggregates not found for the"
    assert scene.both(scene.of("bare")) == ("NoValidHost", OWN, f"{text} network {scene.ids['bare']}")
    found = scene.both(scene.port("bare", "bare"))
    assert found == ("NoValidHost", OWN, f"{text} subnet {scene.ids['bare_subnet']}")
    assert scene.both(scene.of("lost"))[0] == "ResourceProviderAggregateRetrievalFailed"


@pytest.mark.parametrize("status", [400, 404, 403, 401, 500])
def test_both_fail_alike_after_an_error_for_subnets(scene, network, status):
    with status_of(network, "/subnets", status):
        theirs, ours = scene.outcomes(scene.of("west"))
    assert ours[:2] == theirs[:2]
    if status not in {401, 403}:
        assert ours[2] == theirs[2]


def test_both_name_a_port_that_cannot_be_read(scene, network):
    port = scene.port("flat")
    with status_of(network, "/ports", 500):
        theirs, ours = scene.outcomes(port)
    assert ours[:2] == theirs[:2] == ("NovaException", OWN)
    # After the colon, each quotes Neutron in its own words.
    assert {text.rpartition(": ")[0] for *_, text in (theirs, ours)} == {f"Failed to access port {port['port_id']}"}


def test_both_name_a_missing_port(scene):
    port = new_uuid()
    assert scene.both({"port_id": port}) == ("PortNotFound", OWN, f"Port id {port} could not be found.")


def test_both_fail_with_a_remote_error_if_neutron_is_silent(scene, network):
    network.is_silent = True
    try:
        assert scene.both(scene.of("west")) == ("ConnectFailure", "keystoneauth1.exceptions.connection", "")
    finally:
        network.is_silent = False
    assert scene.both(scene.of("west")) == {0, 1}
