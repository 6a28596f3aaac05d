"""Agents that a test plays over HTTP: they register at a real server, and do what they are ordered, or fail."""

import threading
from contextlib import contextmanager

from roost.app import open_roost
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve

ADMIN = {"x-auth-token": "admin"}
HOSTS = ("host-0", "host-1", "host-2")
_WAIT_S = 0.2


@contextmanager
def three_hosts(folder):
    """Give a real server of its own with three hosts of 4 VCPU: which one is chosen depends on what was built."""
    with open_roost(None, folder) as roost:
        roost.install(fleet(len(HOSTS), vcpus=4))
    with serve(noun="up", folder=folder) as found:
        yield found


@contextmanager
def at_play(server, *, failing=()):
    """Let agents of all hosts do meanwhile what they are ordered.

    Args:
        failing: hosts that cannot build.
    """
    players, is_over = Players(server, HOSTS), threading.Event()

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


class Players:
    """Agents of some hosts, and whoever asks the server for instances.

    Args:
        server: as ``tests.support.servers.servers`` gives it.
        hosts: of which there are agents.
    """

    def __init__(self, server, hosts):
        self.server = server
        self.done = []  # hosts and actions, in the order in which they were answered
        self._agents = {}
        for host in hosts:
            body = {"run": uuid_of("run", host), "driver": "fake", "nodes": []}
            status, registered = self.ask("PUT", f"/agents/{host}", body)
            assert status == 200, registered
            self._agents[host] = {"host": host, "run": body["run"], "fence": registered["fence"], "held": []}

    def ask(self, method, path, body=None, *, key=None):
        """Ask as an administrator; give status and what came back."""
        headers = ADMIN if key is None else {**ADMIN, "idempotency-key": key}
        status, _, told = self.server.ask(method, f"/v1{path}", body, headers=headers)
        return status, told

    def act(self, failing=()):
        """Do what is ordered now, if anything is.

        Args:
            failing: hosts that cannot build.
        """
        asked = {"agents": list(self._agents.values()), "wait_s": _WAIT_S}
        status, told = self.ask("POST", "/orders/poll", asked)
        assert status == 200, told
        for order in told["orders"]:
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
        """Work until an operation is over; give it."""
        while True:
            status, found = self.ask("GET", f"/operations/{operation}?wait_s={_WAIT_S}")
            assert status == 200, found
            if found["outcome"] != "open":
                return found
            self.act(failing)

    def used(self):
        """Give the VCPU that are in use of each host."""
        hosts = self.ask("GET", "/hosts")[1]["hosts"]
        return {each["host"]: each["resources"]["VCPU"]["used"] for each in hosts}
