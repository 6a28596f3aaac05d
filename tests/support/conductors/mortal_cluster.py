"""A cluster whose servers, conductors and agents are killed in turn; some agents stay away for a long time."""

import random
import re
import threading
import time
from contextlib import contextmanager
from itertools import zip_longest

from tests.support.fleets.products import roost
from tests.support.servers.clusters import AgentsProgram, ConductorProgram, ServerProgram

DOWN_S = 7
SYNC_S = 10.0  # interval of the agents' power state reports
SETTLE_S = 240.0
UUID = re.compile("[0-9a-f]{8}-[0-9a-f-]{27}")
SCRIPT = '[[fault]]\naction = "spawn"\nshare = 0.05\n'  # of the fake driver
_AWAY_S = 60.0  # By then the server must have given up an absent host.
_LIVES_S = 4.0  # Uptime of servers and conductors between two kills, while hosts are away.


class SeededAgents(AgentsProgram):
    """Agents whose random faults are repeatable: each start has the next seed of a generator.

    Args:
        seed: of the generator.
        more: arguments of ``AgentsProgram``.
    """

    def __init__(self, *words, seed, **more):
        super().__init__(*words, **more)
        self._fixed, self._chance = self.words, random.Random(f"{seed} {self.host}")

    def start(self):
        """Start the process with another seed; return the first line of its output."""
        self.words = (*self._fixed, "--option", f"seed={self._chance.getrandbits(32)}")
        return super().start()


class Cluster:
    """Servers on one database, separate conductors, and agent processes.

    Args:
        folder: holds all files of the cluster.
        database: URL of a PostgreSQL database for two servers, one of them without a conductor, and
            ``roost conductor``; if empty, one server runs on SQLite.
        processes: number of agent processes.
        hosts: number of hosts of each agent process.
        settings: further settings, first those of section ``conductor``.
        agent: further lines of section ``agent``.
        script: the script of the fake driver.
        seed: of the random faults of the script.
    """

    def __init__(self, folder, *, database="", processes=3, hosts=4, settings="", agent="", script=SCRIPT, seed=7):
        self.folder, self.guests, self.database = folder, folder / "guests", database
        settings = f"[DEFAULT]\nservice_down_time = {DOWN_S}\n[conductor]\nowner_s = 3.0\n{settings}"
        settings += f'[store]\nurl = "{database}"\n' if database else ""
        words = [("--no-conductor",), ()] if database else [()]
        self.servers = [
            ServerProgram(*more, folder=folder, settings=settings, name=f"server{at}") for at, more in enumerate(words)
        ]
        self.conductors = [ConductorProgram(folder=folder, settings=settings)] if database else []
        for each in (*self.servers, *self.conductors):
            each.start()
        (folder / "agents.toml").write_text(f"[agent]\nsync_power_state_interval = {SYNC_S}\n{agent}")
        (folder / "fake.toml").write_text(script)
        self.agents = [
            SeededAgents(
                self.servers[at % len(self.servers)].address,
                "--config",
                folder / "agents.toml",
                folder=folder,
                guests=self.guests,
                host=f"rack{at}",
                fleet=hosts,
                options={"script": folder / "fake.toml"},
                seed=seed,
            )
            for at in range(processes)
        ]
        for each in self.agents:
            each.start()
        self.turn = 0
        self.away = set()  # hosts that the server gave up
        self.trouble = []  # errors that ended the killing

    @property
    def programs(self):
        """All programs that may be killed."""
        return [*self.servers, *self.conductors, *self.agents]

    def kills(self):
        """Return the number of kills by kind of program."""
        kinds = {"server": self.servers, "conductor": self.conductors, "agents": self.agents}
        return {kind: sum(each.kills for each in programs) for kind, programs in kinds.items() if programs}

    def asked(self, method, path, body=None, *, key=None):
        """Send a request to one of the servers, or to the next one if that is dead; return status and reply."""
        end_s = time.monotonic() + 120
        while True:
            self.turn += 1
            try:
                status, reply = self.servers[self.turn % len(self.servers)].ask(
                    method, path, body, **({} if key is None else {"idempotency-key": key})
                )
            except Exception as error:  # noqa: BLE001  # A dying server may send any part of a reply.
                status, reply = 503, repr(error)
            if status != 503:
                return status, reply
            assert time.monotonic() < end_s, (method, path, reply, [each.last_words() for each in self.servers])
            time.sleep(0.1)

    def listed(self, noun, query=""):
        """Return all entries of a list."""
        found, cursor = [], ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            page = self.asked("GET", f"/v1/{noun}?limit=1000{query}{more}")[1]
            found, cursor = found + page[noun], page.get("next")
        return found

    def instances(self):
        """Return all instances by uuid, including deleted ones."""
        return {each["uuid"]: each for each in self.listed("instances") + self.listed("instances", "&status=DELETED")}

    def stories(self, text):
        """Return the instances whose uuids a text contains, each with its operations and orders."""
        found = [self.asked("GET", f"/v1/instances/{uuid}") for uuid in sorted({*UUID.findall(text)})]
        return [
            (shown, [self._operation(each["uuid"]) for each in shown["operations"]])
            for status, shown in found
            if status == 200
        ]

    def _operation(self, uuid):
        shown = self.asked("GET", f"/v1/operations/{uuid}")[1]
        return [shown[name] for name in ("kind", "step", "outcome", "problem", "created_at_s", "orders")]

    def until(self, true, why):
        """Wait until a condition holds."""
        end_s = time.monotonic() + SETTLE_S
        while not true():
            assert time.monotonic() < end_s, why()
            time.sleep(0.2)

    def until_up(self):
        """Wait until all hosts are known, up and ready, which includes the removal of foreign guests."""
        count = sum(len(each.hosts) for each in self.agents)
        self.until(
            lambda: (
                [each["up"] and each["state"] for each in self.listed("agents")].count("ready") == count
                and len(self.listed("hosts")) == count
            ),
            lambda: self.listed("agents"),
        )

    def settle(self):
        """Wait until no instance is busy; return the duration in seconds."""
        begun_s = time.monotonic()

        def busy():
            return [each for each in self.instances().values() if each["task"] or each["status"] == "BUILD"]

        self.until(lambda: not busy(), busy)
        return time.monotonic() - begun_s

    def stop(self):
        """Stop all programs."""
        for each in self.programs:
            each.kill()

    def audited(self):
        """Return the problems that an audit of the database finds."""
        found = roost("audit", "--config", self.folder / "server0.toml", "--data", self.folder, cwd=self.folder)
        return "" if found.returncode == 0 else found.stdout + found.stderr


class Reaper:
    """Kills all programs of a cluster in turn and restarts them; some agents return only after they are given up."""

    def __init__(self, cluster, *, every_s, seed=7):
        self.cluster, self.every_s = cluster, every_s
        self.is_over, self.chance = threading.Event(), random.Random(seed)
        self.returns = {}  # threads that restart agents
        self.killing = threading.Lock()

    @contextmanager
    def rest(self):
        """Kill nothing during the block; agents that are away stay away."""
        with self.killing:
            yield

    @contextmanager
    def at_work(self):
        """Kill programs during the block."""
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
        pairs = zip_longest(cluster.servers, cluster.conductors)
        keepers = [each for pair in pairs for each in pair if each is not None]
        try:
            while not self.is_over.is_set():
                for _ in range(6):
                    self._kill(keepers[number % len(keepers)])
                    self._kill(cluster.agents[number % len(cluster.agents)])
                    number += 1
                self._give_up(cluster.agents[number // 6 % len(cluster.agents)])
        except BaseException as error:  # noqa: BLE001  # ``at_work`` reports it at the end.
            cluster.trouble.append(error)
        finally:
            for each in cluster.programs:
                self._wait_for(each)
                if not each.lives:
                    each.start()

    def _kill(self, program):
        """Kill a program and restart it; an agent restarts in a thread, during later kills."""
        if self.is_over.wait(self.chance.uniform(*self.every_s)):
            return
        self._wait_for(program)
        with self.killing:
            program.kill()
            self.is_over.wait(0.2)
            if program in self.cluster.agents:
                self.returns[program] = threading.Thread(target=program.start)
                self.returns[program].start()
            else:
                program.start()

    def _wait_for(self, program):
        restart = self.returns.pop(program, None)
        if restart is not None:
            restart.join()

    def _give_up(self, rack):
        """Keep an agent process away until its hosts are given up, and then during kills of other programs."""
        cluster, begun_s = self.cluster, time.monotonic()
        self._wait_for(rack)
        with self.killing:
            rack.kill()
        while not self.is_over.wait(0.5) and not cluster.away:
            states = {each["host"]: each["state"] for each in cluster.listed("agents")}
            cluster.away = {*rack.hosts} if {states.get(host) for host in rack.hosts} == {"gone"} else set()
            # A new server gives up no host for a while.
            assert time.monotonic() < begun_s + _AWAY_S, states
        for each in (*cluster.servers, *cluster.conductors):
            self.is_over.wait(_LIVES_S)
            self._kill(each)
        cluster.away = set()
        rack.start()
