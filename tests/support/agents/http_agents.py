"""Agents that a test plays over HTTP: they register at a real server, and carry out orders or fail."""

import threading
from contextlib import contextmanager

from msgspec.structs import replace

from roost.app import open_roost
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve

ADMIN = {"x-auth-token": "admin"}
HOSTS = ("host-0", "host-1", "host-2")
_WAIT_S = 0.2


@contextmanager
def three_hosts(folder):
    """Yield a real server with three hosts of 4 VCPU, two in rack r1; the chosen host depends on earlier builds."""
    equal = fleet(len(HOSTS), vcpus=4)
    racks = ("r1", "r1", "r2")
    hosts = [replace(host, facts=replace(host.facts, rack=rack)) for host, rack in zip(equal.hosts, racks, strict=True)]
    with open_roost(None, folder) as roost:
        roost.install(replace(equal, hosts=hosts))
    with serve(noun="up", folder=folder) as server:
        yield server


@contextmanager
def play_agents(server, *, failing=()):
    """Run agents of all hosts during the block; they carry out their orders.

    Args:
        failing: hosts that cannot build guests.
    """
    players, is_over = AgentPlayers(server, HOSTS), threading.Event()

    def play():
        while not is_over.is_set():
            players.act(failing)

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield players
    finally:
        is_over.set()
        thread.join()


class AgentPlayers:
    """Agents of some hosts, and a client of the server's API.

    Args:
        server: a server from ``tests.support.servers.servers``.
        hosts: names of the hosts with an agent.
    """

    def __init__(self, server, hosts):
        self.server = server
        self.done = []  # (host, action) pairs, in the order of their answers
        self._agents = {}
        for host in hosts:
            body = {"run": uuid_of("run", host), "driver": "fake", "nodes": []}
            status, registered = self.ask("PUT", f"/agents/{host}", body)
            assert status == 200, registered
            self._agents[host] = {"host": host, "run": body["run"], "fence": registered["fence"], "held": []}

    def ask(self, method, path, body=None, *, key=None):
        """Send a request as an administrator; return status and reply."""
        headers = ADMIN if key is None else {**ADMIN, "idempotency-key": key}
        status, _, reply = self.server.ask(method, f"/v1{path}", body, headers=headers)
        return status, reply

    def act(self, failing=()):
        """Carry out the current orders, if any.

        Args:
            failing: hosts that cannot build guests.
        """
        poll = {"agents": list(self._agents.values()), "wait_s": _WAIT_S}
        status, reply = self.ask("POST", "/orders/poll", poll)
        assert status == 200, reply
        for order in reply["orders"]:
            host, action = order["host"], order["act"]["action"]
            fails = action == "spawn" and host in failing
            answer = {"run": self._agents[host]["run"], "outcome": "failed" if fails else "ok"}
            if fails:
                answer["problem"] = f"{host} has no network"
            if action == "prepare":
                answer["prepared"] = {"uuid": order["instance"], "node": host, "address": host}
            if action == "inspect":
                found = {"uuid": order["instance"], "node": host, "operation": order["operation"], "state": "running"}
                answer["found"] = found
            assert self.ask("POST", f"/orders/{order['id']}/answer", answer) == (200, {"is_wanted": True})
            self.done.append((host, action))

    def over(self, operation, *, failing=()):
        """Work until an operation ends; return it."""
        while True:
            status, shown = self.ask("GET", f"/operations/{operation}?wait_s={_WAIT_S}")
            assert status == 200, shown
            if shown["outcome"] != "open":
                return shown
            self.act(failing)

    def used(self):
        """Return the used VCPU of each host."""
        hosts = self.ask("GET", "/hosts")[1]["hosts"]
        return {each["host"]: each["resources"]["VCPU"]["used"] for each in hosts}
