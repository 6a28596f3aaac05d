"""A cluster of which every part dies in turn: servers, conductors, and agents of which some stay away for long."""

import random
import re
import threading
import time
from contextlib import contextmanager

from tests.support.fleets.products import roost
from tests.support.servers.clusters import AgentsProgram, ConductorProgram, ServerProgram

DOWN_S = 7
SYNC_S = 10.0  # between two times that agents say which guests run
SETTLE_S = 240.0
UUID = re.compile("[0-9a-f]{8}-[0-9a-f-]{27}")
_AWAY_S = 60.0  # A host that is away for longer was given up, or nobody watches.
_LIVES_S = 4.0  # So long servers and conductors live meanwhile.


class Cluster:
    """Servers on one database, conductors beside them, and processes of agents that turn to the servers.

    Args:
        folder: of all that they keep.
        database: URL of a PostgreSQL database, which two servers share, one of them without a conductor, and
            ``roost conductor``; empty: one server on SQLite.
        processes: of agents.
        hosts: of each of these.
    """

    def __init__(self, folder, *, database="", processes=3, hosts=4):
        self.folder, self.guests, self.database = folder, folder / "guests", database
        settings = f"[DEFAULT]\nservice_down_time = {DOWN_S}\n[conductor]\nowner_s = 3.0\n"
        settings += f'[store]\nurl = "{database}"\n' if database else ""
        words = [("--no-conductor",), ()] if database else [()]
        self.servers = [
            ServerProgram(*more, folder=folder, settings=settings, name=f"server{at}") for at, more in enumerate(words)
        ]
        self.conductors = [ConductorProgram(folder=folder, settings=settings)] if database else []
        for each in (*self.servers, *self.conductors):
            each.start()
        (folder / "agents.toml").write_text(f"[agent]\nsync_power_state_interval = {SYNC_S}\n")
        (folder / "fake.toml").write_text('[[fault]]\naction = "spawn"\nshare = 0.05\n')
        self.agents = [
            AgentsProgram(
                self.servers[at % len(self.servers)].address,
                "--config",
                folder / "agents.toml",
                folder=folder,
                guests=self.guests,
                host=f"rack{at}",
                fleet=hosts,
                options={"script": folder / "fake.toml"},
            )
            for at in range(processes)
        ]
        for each in self.agents:
            each.start()
        self.turn = 0
        self.away = set()  # hosts that were given up
        self.trouble = []  # why nobody is killed any more

    @property
    def programs(self):
        """All that may be killed."""
        return [*self.servers, *self.conductors, *self.agents]

    def kills(self):
        """Return how many of each kind were killed."""
        kinds = {"server": self.servers, "conductor": self.conductors, "agents": self.agents}
        return {kind: sum(each.kills for each in programs) for kind, programs in kinds.items() if programs}

    def asked(self, method, path, body=None, *, key=None):
        """Ask one of the servers, or the next one if that is dead; return status and answer."""
        end_s = time.monotonic() + 120
        while True:
            self.turn += 1
            try:
                status, told = self.servers[self.turn % len(self.servers)].ask(
                    method, path, body, **({} if key is None else {"idempotency-key": key})
                )
            except Exception as error:  # noqa: BLE001  # Whatever a server that dies leaves of an answer.
                status, told = 503, repr(error)
            if status != 503:
                return status, told
            assert time.monotonic() < end_s, (method, path, told, [each.last_words() for each in self.servers])
            time.sleep(0.1)

    def listed(self, noun, query=""):
        """Return all of a list."""
        found, cursor = [], ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            page = self.asked("GET", f"/v1/{noun}?limit=1000{query}{more}")[1]
            found, cursor = found + page[noun], page.get("next")
        return found

    def instances(self):
        """Return all instances by uuid, those that are deleted, too."""
        return {each["uuid"]: each for each in self.listed("instances") + self.listed("instances", "&status=DELETED")}

    def stories(self, text):
        """Return of each instance that a text names what happened to it, and what was ordered."""
        found = [self.asked("GET", f"/v1/instances/{uuid}") for uuid in sorted({*UUID.findall(text)})]
        return [
            (shown, [self._told(each["uuid"]) for each in shown["operations"]])
            for status, shown in found
            if status == 200
        ]

    def _told(self, uuid):
        told = self.asked("GET", f"/v1/operations/{uuid}")[1]
        return [told[name] for name in ("kind", "step", "outcome", "problem", "created_at_s", "orders")]

    def until(self, true, why):
        """Wait until something is so."""
        end_s = time.monotonic() + SETTLE_S
        while not true():
            assert time.monotonic() < end_s, why()
            time.sleep(0.2)

    def until_up(self):
        """Wait until all hosts are there, up, and rid of what is not their own any more."""
        count = sum(len(each.hosts) for each in self.agents)
        self.until(
            lambda: (
                [each["up"] and each["state"] for each in self.listed("agents")].count("ready") == count
                and len(self.listed("hosts")) == count
            ),
            lambda: self.listed("agents"),
        )

    def settle(self):
        """Wait until nothing is being done any more; return the seconds that it took."""
        begun_s = time.monotonic()

        def busy():
            return [each for each in self.instances().values() if each["task"] or each["status"] == "BUILD"]

        self.until(lambda: not busy(), busy)
        return time.monotonic() - begun_s

    def stop(self):
        """End all of it."""
        for each in self.programs:
            each.kill()

    def audited(self):
        """Say what an audit of the database finds."""
        found = roost("audit", "--config", self.folder / "server0.toml", "--data", self.folder, cwd=self.folder)
        return "" if found.returncode == 0 else found.stdout + found.stderr


class Reaper:
    """Kills all programs of a cluster in turn, and lets each come back, some agents only when they were given up."""

    def __init__(self, cluster, *, every_s):
        self.cluster, self.every_s = cluster, every_s
        self.is_over, self.chance = threading.Event(), random.Random(7)
        self.returns = {}  # threads in which agents come back

    @contextmanager
    def at_work(self):
        """Let it kill."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self
        finally:
            self.is_over.set()
            thread.join()
        assert not self.cluster.trouble, self.cluster.trouble

    def _run(self):
        cluster, number = self.cluster, 0
        keepers = [*cluster.servers, *cluster.conductors]
        try:
            while not self.is_over.is_set():
                for _ in range(6):
                    self._kill(keepers[number % len(keepers)])
                    self._kill(cluster.agents[number % len(cluster.agents)])
                    number += 1
                self._give_up(cluster.agents[number // 6 % len(cluster.agents)])
        except BaseException as error:  # noqa: BLE001  # Whoever waits for the end is told.
            cluster.trouble.append(error)
        finally:
            for each in cluster.programs:
                self._wait_for(each)
                if not each.lives:
                    each.start()

    def _kill(self, program):
        """Kill a program; agents come back while others die, whoever has the database before that."""
        if self.is_over.wait(self.chance.uniform(*self.every_s)):
            return
        self._wait_for(program)
        program.kill()
        self.is_over.wait(0.2)
        if program in self.cluster.agents:
            self.returns[program] = threading.Thread(target=program.start)
            self.returns[program].start()
        else:
            program.start()

    def _wait_for(self, program):
        returning = self.returns.pop(program, None)
        if returning is not None:
            returning.join()

    def _give_up(self, rack):
        """Let a process of agents stay away until its hosts are given up, and then for so long that others die."""
        cluster, begun_s = self.cluster, time.monotonic()
        self._wait_for(rack)
        rack.kill()
        while not self.is_over.wait(0.5) and not cluster.away:
            states = {each["host"]: each["state"] for each in cluster.listed("agents")}
            cluster.away = {*rack.hosts} if {states.get(host) for host in rack.hosts} == {"gone"} else set()
            assert time.monotonic() < begun_s + _AWAY_S, states  # A server that is new gives up nobody for a while.
        for each in (*cluster.servers, *cluster.conductors):
            self.is_over.wait(_LIVES_S)
            self._kill(each)
        cluster.away = set()
        rack.start()
