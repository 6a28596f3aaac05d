"""Remote Placements: servers with providers, and a product that claims on them."""

import http.client
import json
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from roost.app.remote_placement import RemoteFollower
from roost.app.up import open_product
from roost.client.placement_http import Connection
from roost.model.settings.roost_settings import Settings
from roost.simulator.stable_uuids import uuid_of
from tests.support.servers.in_process_api import RoostApi
from tests.support.servers.servers import serve

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39", "content-type": "application/json"}


def host(number):
    """Return the provider uuid of a host."""
    return uuid_of("remote host", str(number))


class RemoteClient:
    """A client of a Placement API at an address."""

    def __init__(self, address):
        self.address = address

    def ask(self, method, path, body=None):
        """Send one request; return its status and the decoded body."""
        parts = urlsplit(self.address)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, parts.path.rstrip("/") + path, body=sent, headers=HEADERS)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text else None

    def stock(self, count, *, vcpus=4):
        """Create hosts host-0, host-1, … with ``vcpus`` VCPU each; higher numbers have more memory."""
        for number in range(count):
            self.add(f"host-{number}", host(number), VCPU=vcpus, MEMORY_MB=4096 * (number + 1))

    def add(self, name, uuid, *, parent=None, **amounts):
        """Create a provider with inventories."""
        provider = {"name": name, "uuid": uuid} | ({} if parent is None else {"parent_provider_uuid": parent})
        assert self.ask("POST", "/resource_providers", provider)[0] == 200
        body = {
            "resource_provider_generation": 0,
            "inventories": {name: {"total": amount} for name, amount in amounts.items()},
        }
        assert self.ask("PUT", f"/resource_providers/{uuid}/inventories", body)[0] == 200

    def held(self, consumer):
        """Return the allocations of a consumer: provider -> class -> amount."""
        status, found = self.ask("GET", f"/allocations/{consumer}")
        assert status == 200
        return {uuid: each["resources"] for uuid, each in found["allocations"].items()}

    def used(self, number):
        """Return the usages of a host."""
        return self.ask("GET", f"/resource_providers/{host(number)}/usages")[1]["usages"]

    def take(self, number, **amounts):
        """Allocate amounts on a host for another consumer."""
        body = {
            "allocations": {host(number): {"resources": amounts}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        status, found = self.ask("PUT", f"/allocations/{uuid_of('somebody', str(number))}", body)
        assert status == 204, found


class RemoteRoostApi(RoostApi):
    """Roost's own API over a remote Placement."""

    def __init__(self, product, serving, remote):
        super().__init__(product, serving)
        self.remote = remote

    def look(self):
        """Read the hosts of the remote Placement."""
        self.remote.sync_hosts(self.serving)


@contextmanager
def roost_api_over_remote(
    address, *fleets, url="sqlite://", settings=None, pause=lambda _: None, wrapped=lambda remote: remote
):
    """Open Roost's own API over a remote Placement."""
    connections = [Connection(address, token="admin", timeout_s=20, pause=pause) for _ in range(2)]
    remote = RemoteFollower(*connections, interval_s=60)
    remote.placement = wrapped(remote.placement)
    product, serving = open_product(url, settings or Settings(), remote=remote)
    try:
        for fleet in fleets:
            serving.run(lambda _, fleet=fleet: product.install(fleet))
        yield RemoteRoostApi(product, serving, remote)
    finally:
        serving.stop()
        for connection in connections:
            connection.close()


@contextmanager
def stocked_placement(request, folder):
    """Yield a Placement with host-0, host-1 and host-2, of 4 VCPU each.

    Args:
        request: pytest's ``request``, with the parameter ``ours`` or ``reference``.
        folder: for the files of our own server.
    """
    with ExitStack() as stack:
        if request.param == "ours":
            own = folder / "remote"
            own.mkdir()
            server = stack.enter_context(serve(folder=own))
        else:
            server = request.getfixturevalue("reference_placement")
            server.empty()
        placement = RemoteClient(server.address)
        placement.stock(3)
        yield placement
