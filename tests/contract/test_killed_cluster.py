"""Servers and agents that are killed in turn, while instances are built, moved and ended: all of it settles."""

import random
import threading
import time
from collections import Counter
from contextlib import contextmanager

import pytest

from tests.clusters import AgentsProgram, ServerProgram, guests_on
from tests.products import roost

DOWN_S = 4
SETTLE_S = 240.0
FLAVORS = [{"name": f"flavor {size}", "vcpus": size, "memory_mb": 64} for size in (1, 2)]
# What may be asked of an instance: by its status the acts, each with what is said, and with what it needs of a server.
ACTS = {
    "ACTIVE": [
        ("stop", None), ("migrate", {}), ("live-migrate", {}), ("resize", {}),
        ("migrate", {"verify": True}), ("evacuate", {}), ("stop", None),
    ],
    "SHUTOFF": [
        ("start", None), ("migrate", {}), ("resize", {}), ("evacuate", {}), ("start", None),
    ],
    "VERIFY_RESIZE": [("confirm", None), ("revert", None)],
}  # fmt: skip
MOVES = {"migrate", "live-migrate", "resize", "evacuate"}


class Cluster:
    """Servers on one database, and processes of agents that turn to them."""

    def __init__(self, folder, *, database="", servers=1, processes=3, hosts=4):
        self.folder, self.guests, self.database = folder, folder / "guests", database
        settings = f"[DEFAULT]\nservice_down_time = {DOWN_S}\n[conductor]\nowner_s = 3.0\n"
        settings += f'[store]\nurl = "{database}"\n' if database else ""
        self.servers = [ServerProgram(folder=folder, settings=settings, name=f"server{at}") for at in range(servers)]
        for each in self.servers:
            each.start()
        (folder / "fake.toml").write_text('[[fault]]\naction = "spawn"\nshare = 0.05\n')
        self.agents = [
            AgentsProgram(
                self.servers[at % servers].address, folder=folder, guests=self.guests, host=f"rack{at}", fleet=hosts,
                options={"script": folder / "fake.toml"},
            )
            for at in range(processes)
        ]  # fmt: skip
        for each in self.agents:
            each.start()
        self.turn = 0

    @property
    def programs(self):
        """All that may be killed."""
        return [*self.servers, *self.agents]

    def asked(self, method, path, body=None, *, key=None):
        """Ask one of the servers, or the next one if that is dead; give status and answer."""
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
            assert time.monotonic() < end_s, (method, path, told)
            time.sleep(0.1)

    def listed(self, noun, query=""):
        """Give all of a list."""
        found, cursor = [], ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            page = self.asked("GET", f"/v1/{noun}?limit=1000{query}{more}")[1]
            found, cursor = found + page[noun], page.get("next")
        return found

    def instances(self):
        """Give all instances by uuid, those that are deleted, too."""
        return {each["uuid"]: each for each in self.listed("instances") + self.listed("instances", "&status=DELETED")}

    def story(self, uuid):
        """Give what happened to an instance, and what was ordered."""
        shown = self.asked("GET", f"/v1/instances/{uuid}")[1]
        told = [self.asked("GET", f"/v1/operations/{each['uuid']}")[1] for each in shown.get("operations", ())]
        return shown, [(each["kind"], each["step"], each["outcome"], each["problem"], each["orders"]) for each in told]

    def until(self, true, why):
        """Wait until something is so."""
        end_s = time.monotonic() + SETTLE_S
        while not true():
            assert time.monotonic() < end_s, why()
            time.sleep(0.2)

    def until_up(self):
        """Wait until all hosts are there and up."""
        count = sum(len(each.hosts) for each in self.agents)
        self.until(lambda: [each["up"] for each in self.listed("agents")].count(True) == count
                   and len(self.listed("hosts")) == count, lambda: self.listed("agents"))  # fmt: skip

    def settle(self):
        """Wait until nothing is being done any more; give the seconds that it took."""
        begun_s = time.monotonic()

        def busy():
            return [each for each in self.instances().values() if each["task"] or each["status"] == "BUILD"]

        self.until(lambda: not busy(), busy)
        return time.monotonic() - begun_s

    def stop(self):
        """End all of it."""
        for each in self.programs:
            each.kill()

    @contextmanager
    def dying(self, every_s):
        """Kill one program after the other, and let each come back; every fourth one only when it was given up."""
        is_over = threading.Event()

        def reap():
            number = 0
            while not is_over.wait(every_s):
                program = self.programs[number % len(self.programs)]
                number += 1
                program.kill()
                is_over.wait(2.0 * DOWN_S if number % 4 == 0 else 0.3)
                program.start()

        reaper = threading.Thread(target=reap)
        reaper.start()
        try:
            yield
        finally:
            is_over.set()
            reaper.join()


class Clients:
    """Those who ask for instances, and for what is to be done to them; they remember what they were promised."""

    def __init__(self, cluster, *, builds, acts, threads=4):
        self.cluster, self.threads = cluster, threads
        self.builds, self.acts = builds, acts  # how many are left
        self.lock, self.errors = threading.Lock(), []
        self.promised, self.ended = set(), set()  # instances that are to be, and not to be any more
        self.accepted, self.refused, self.outcomes = Counter(), Counter(), Counter()
        paths = cluster.asked("GET", "/v1/openapi.json")[1]["paths"]
        self.known = {path.rpartition("/")[2] for path in paths if "/instances/{id}/" in path}

    def run(self):
        """Ask for all of it."""
        threads = [threading.Thread(target=self._work, args=(number,)) for number in range(self.threads)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert not self.errors, self.errors

    def _work(self, number):
        chance, step = random.Random(number), 0
        try:
            while self._is_left():
                step += 1
                key = f"{number} {step}"
                if self.builds > 0 and (self.acts <= 0 or chance.random() < 0.5):
                    self._build(chance, key)
                else:
                    self._act(chance, key)
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            self.errors.append(error)

    def _is_left(self):
        with self.lock:
            return self.builds > 0 or self.acts > 0

    def _build(self, chance, key):
        with self.lock:
            count = min(chance.randint(1, 4), self.builds)
            self.builds -= count
        if count:
            body = {"flavor": FLAVORS[0], "name": key, "count": count}
            status, told = self.cluster.asked("POST", "/v1/instances", body, key=key)
            assert status == 202, told
            with self.lock:
                self.promised |= {*told["instances"]}
            self._wait(told, "build")

    def _act(self, chance, key):
        with self.lock:
            uuids = sorted(self.promised - self.ended)
        if not uuids:
            time.sleep(0.1)
            return
        uuid = chance.choice(uuids)
        shown = self.cluster.asked("GET", f"/v1/instances/{uuid}")[1]
        acts = [each for each in ACTS.get(shown["status"], ()) if each[0] in self.known]
        if chance.random() < 0.1:
            status, told = self.cluster.asked("DELETE", f"/v1/instances/{uuid}", key=key)
            self._note("delete", status, told)
            if status == 202:
                with self.lock:
                    self.ended.add(uuid)
        elif acts and not shown["task"]:
            act, body = chance.choice(acts)
            if act == "resize":
                held = sum(amounts.get("VCPU", 0) for amounts in shown["allocations"].values())
                body = {"flavor": FLAVORS[held == 1]}
            status, told = self.cluster.asked("POST", f"/v1/instances/{uuid}/{act}", body, key=key)
            self._note(act, status, told)
        else:
            time.sleep(0.05)

    def _note(self, act, status, told):
        # Somebody else may have resized it meanwhile.
        assert status in ({202, 400, 409} if act == "resize" else {202, 409}), (act, told)
        with self.lock:
            (self.accepted if status == 202 else self.refused)[act] += 1
            is_counted = act in MOVES or not MOVES & self.known
            self.acts -= status == 202 and is_counted
        if status == 202:
            self._wait(told, act)

    def _wait(self, told, act):
        path = f"/v1/operations/{told['operation']}?wait_s=5"
        while (found := self.cluster.asked("GET", path))[1].get("outcome") == "open":
            pass
        assert found[0] == 200, found  # What was acknowledged is known, whoever died since.
        with self.lock:
            self.outcomes[act, found[1]["outcome"]] += 1


def problems_of(cluster, clients):
    """Say what is not as it should be, now that all has settled."""
    shown, guests = cluster.instances(), guests_on(cluster.guests)
    found = [f"{uuid} was promised and is not known" for uuid in clients.promised - shown.keys()]
    found += [f"{uuid} was not asked for, and is on {guests[uuid]}" for uuid in guests.keys() - shown.keys()]
    for uuid, each in shown.items():
        status, host, on = each["status"], each["host"], guests.get(uuid, [])
        fine = {
            "ACTIVE": on == [(host, "running")], "SHUTOFF": on == [(host, "stopped")],
            "ERROR": bool(each["fault"]) and {name for name, _ in on} <= {host}, "DELETED": not on and not host,
            "VERIFY_RESIZE": dict(on).get(host) in {"running", "stopped"} and len(on) <= 2,
        }  # fmt: skip
        if not fine[status]:
            found.append(f"{uuid} is {status} on {host!r} ({each['fault']}), and hosts have {on}")
        if uuid in clients.ended and status not in {"DELETED", "ERROR"}:
            found.append(f"{uuid} was to end, and is {status}")
    return found


def used(cluster):
    """Give what Placement says that is in use, by uuid of the provider, and what consumers hold of it, summed up."""
    usages, sums = {}, {}
    for each in cluster.asked("GET", "/placement/resource_providers")[1]["resource_providers"]:
        path = f"/placement/resource_providers/{each['uuid']}"
        told = cluster.asked("GET", f"{path}/usages")[1]["usages"]
        usages[each["uuid"]] = {name: amount for name, amount in told.items() if amount}
        held = Counter()
        for consumer in cluster.asked("GET", f"{path}/allocations")[1]["allocations"].values():
            held.update(consumer["resources"])
        sums[each["uuid"]] = dict(held)
    return usages, sums


def audited(cluster):
    """Say what an audit of the database finds."""
    found = roost("audit", "--config", cluster.folder / "server0.toml", "--data", cluster.folder, cwd=cluster.folder)
    return "" if found.returncode == 0 else found.stdout + found.stderr


def lived_through(cluster, *, builds, acts, every_s):
    """Let it happen, look at what came of it, end everything, and look again; give what there is to tell."""
    cluster.until_up()
    clients = Clients(cluster, builds=builds, acts=acts)
    begun_s = time.monotonic()
    with cluster.dying(every_s):
        clients.run()
    took_s = time.monotonic() - begun_s
    cluster.until_up()
    settled_s = cluster.settle()
    problems = problems_of(cluster, clients)
    assert not problems, "\n".join([*problems, *(str(cluster.story(each[:36])) for each in problems[:3])])
    assert audited(cluster) == ""
    usages, sums = used(cluster)
    assert usages == sums
    statuses = Counter(each["status"] for each in cluster.instances().values())
    for uuid, each in cluster.instances().items():
        if each["status"] != "DELETED":
            assert cluster.asked("DELETE", f"/v1/instances/{uuid}", key=f"end {uuid}")[0] == 202
    cluster.settle()
    assert {each["status"] for each in cluster.instances().values()} == {"DELETED"}
    assert not any(used(cluster)[0].values())
    assert not any(guests_on(cluster.guests).values())
    assert audited(cluster) == ""
    kills = {each.log.stem: each.kills for each in cluster.programs}
    return (
        f"{len(clients.promised)} built, {dict(clients.accepted)} accepted, {dict(clients.refused)} refused in "
        f"{took_s:.0f} s, settled {settled_s:.1f} s later; outcomes {dict(clients.outcomes)}; {dict(statuses)}; "
        f"killed {kills}"
    )


@contextmanager
def clustered(folder, **more):
    """Give a cluster, and end it."""
    cluster = Cluster(folder, **more)
    try:
        yield cluster
    finally:
        cluster.stop()


def test_a_small_cluster_of_which_each_part_dies_settles(tmp_path):
    with clustered(tmp_path, processes=2, hosts=3) as cluster:
        assert "built" in lived_through(cluster, builds=8, acts=4, every_s=1.0)


@pytest.mark.soak
def test_a_hundred_builds_and_fifty_moves_on_sqlite(tmp_path):
    with clustered(tmp_path) as cluster:
        print("\nSQLite:", lived_through(cluster, builds=100, acts=50, every_s=0.5))


@pytest.mark.soak
def test_a_hundred_builds_and_fifty_moves_on_postgresql(tmp_path, postgres_url):
    with clustered(tmp_path, database=postgres_url, servers=2) as cluster:
        print("\nPostgreSQL:", lived_through(cluster, builds=100, acts=50, every_s=0.5))
