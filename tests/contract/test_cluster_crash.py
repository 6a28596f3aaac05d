"""Servers, conductors and agents are killed in turn while instances are built, moved and deleted; all work settles."""

import random
import threading
import time
from collections import Counter
from contextlib import contextmanager

import pytest

from tests.support.conductors.idle_cluster import problems_of, usages_and_sums, wait_for_power_states
from tests.support.conductors.mortal_cluster import UUID, Cluster, Reaper
from tests.support.servers.clusters import guests_on

pytestmark = pytest.mark.long

FLAVORS = [{"name": f"flavor {size}", "vcpus": size, "memory_mb": 64} for size in (1, 2)]
# The acts that an instance accepts in each status, each with its request body.
ACTS = {
    "ACTIVE": [
        ("stop", None),
        ("migrate", {}),
        ("live-migrate", {}),
        ("resize", {}),
        ("migrate", {"verify": True}),
        ("live-migrate", {}),
        ("reboot", None),
        ("rebuild", {}),
        ("shelve", None),
    ],
    "SHUTOFF": [
        ("start", None),
        ("migrate", {}),
        ("resize", {}),
        ("start", None),
        ("rebuild", {}),
        ("shelve", None),
    ],
    "SHELVED": [("unshelve", None), ("offload", None)],
    "SHELVED_OFFLOADED": [("unshelve", None)],
    "VERIFY_RESIZE": [("confirm", None), ("revert", None)],
    "ERROR": [("reset", None)],
}
MOVES = {"migrate", "live-migrate", "resize", "evacuate"}
RUN_MAX_S = 900.0


class Clients:
    """Threads that build, move and delete instances; they remember all accepted requests.

    Args:
        cluster: the target of the requests.
        builds: number of instances to build.
        moves: number of moves to be accepted.
        is_enough: returns whether the clients may end after that.
        threads: number of client threads.
    """

    def __init__(self, cluster, *, builds, moves, is_enough, threads=6):
        self.cluster, self.threads, self.is_enough = cluster, threads, is_enough
        self.builds, self.moves = builds, moves  # remaining
        self.lock, self.errors = threading.Lock(), []
        self.promised, self.ended = set(), set()  # instances with an accepted build, and with an accepted deletion
        self.resizes = []  # operation uuid, instance uuid and flavor of each resize
        self.accepted, self.refused, self.outcomes, self.problems = Counter(), Counter(), Counter(), Counter()
        self.end_s = time.monotonic() + RUN_MAX_S

    def run(self):
        """Send all requests."""
        threads = [threading.Thread(target=self._work, args=(number,)) for number in range(self.threads)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert not self.errors, self.errors

    def sizes(self):
        """Return the amounts of each instance's flavor, and of the flavor to which it could revert, by uuid."""
        operations = [(self.cluster.asked("GET", f"/v1/operations/{each[0]}")[1], each) for each in self.resizes]
        resized = {uuid: [] for uuid in self.promised}
        for operation, (_, uuid, flavor) in sorted(operations, key=lambda each: each[0]["created_at_s"]):
            if operation["outcome"] == "done":
                resized[uuid].append(flavor)
        found = {}
        for uuid, each in self.cluster.instances().items():
            shown = {} if each["status"] == "DELETED" else self.cluster.asked("GET", f"/v1/instances/{uuid}")[1]
            moves = [(move["kind"], move["status"]) for move in shown.get("migrations", ())]
            found[uuid] = _sizes(resized[uuid], moves)
        return found

    def _work(self, number):
        chance, step = random.Random(number), 0
        try:
            while self._is_left():
                step += 1
                key = f"{number} {step}"
                if self.builds > 0 and (self.moves <= 0 or chance.random() < 0.5):
                    self._build(chance, key)
                else:
                    self._act(chance, key)
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            self.errors.append(error)

    def _is_left(self):
        with self.lock:
            assert time.monotonic() < self.end_s, (self.accepted, self.cluster.kills())
            is_well = not self.errors and not self.cluster.trouble
            return is_well and (self.builds > 0 or self.moves > 0 or not self.is_enough(self))

    def _build(self, chance, key):
        with self.lock:
            count = min(chance.randint(1, 4), self.builds)
            self.builds -= count
        if count:
            body = {"flavor": FLAVORS[0], "name": key, "count": count}
            status, response = self.cluster.asked("POST", "/v1/instances", body, key=key)
            assert status == 202, response
            with self.lock:
                self.promised |= {*response["instances"]}
            self._wait(response, "build")

    def _act(self, chance, key):
        with self.lock:
            uuids = sorted(self.promised - self.ended)
        if not uuids:
            time.sleep(0.1)
            return
        uuid = chance.choice(uuids)
        shown = self.cluster.asked("GET", f"/v1/instances/{uuid}")[1]
        acts = ACTS.get(shown["status"], ())
        if shown["host"] in self.cluster.away and shown["status"] in {"ACTIVE", "SHUTOFF", "ERROR"}:
            acts = [("evacuate", {})]
        if chance.random() < 0.03:
            status, response = self.cluster.asked("DELETE", f"/v1/instances/{uuid}", key=key)
            if status == 202:
                with self.lock:
                    self.ended.add(uuid)
            self._note(uuid, "delete", None, response=response, status=status)
        elif acts and not shown["task"]:
            act, body = chance.choice(acts)
            if act == "resize":
                held = sum(amounts.get("VCPU", 0) for amounts in shown["allocations"].values())
                body = {"flavor": FLAVORS[held == 1]}
            status, response = self.cluster.asked("POST", f"/v1/instances/{uuid}/{act}", body, key=key)
            self._note(uuid, act, body, response=response, status=status)
        else:
            time.sleep(0.05)

    def _note(self, uuid, act, body, *, response, status):
        # Another client may have resized the instance.
        assert status in ({202, 400, 409} if act == "resize" else {202, 409}), (act, response)
        with self.lock:
            (self.accepted if status == 202 else self.refused)[act] += 1
            self.moves -= status == 202 and act in MOVES
            if status == 202 and act == "resize":
                self.resizes.append((response["operation"], uuid, body["flavor"]))
        if status == 202:
            self._wait(response, act)

    def _wait(self, response, act):
        path = f"/v1/operations/{response['operation']}?wait_s=5"
        while (found := self.cluster.asked("GET", path))[1].get("outcome") == "open":
            pass
        assert found[0] == 200, found  # An acknowledged operation survives every kill.
        with self.lock:
            self.outcomes[act, found[1]["outcome"]] += 1
            if found[1]["problem"]:
                self.problems[f"{act}: {UUID.sub('U', found[1]['problem'])[:100]}"] += 1


def _sizes(flavors, moves):
    """Return the amounts of an instance now and before its last move; it was built with the first of ``FLAVORS``.

    Args:
        flavors: targets of its resizes, in order.
        moves: kind and status of all its migrations.
    """
    now = before = FLAVORS[0]
    resized = iter(flavors)
    for kind, status in moves:
        if kind == "resize" and status != "failed":
            flavor = next(resized)
            before, now = (now, flavor) if status != "reverted" else (now, now)
        elif status != "failed":
            before = now
    return tuple({"VCPU": flavor["vcpus"], "MEMORY_MB": flavor["memory_mb"]} for flavor in (now, before))


def run_with_kills(cluster, *, builds, moves, every_s, is_enough=lambda _clients: True):
    """Run clients under kills, check the result, delete all instances and check again; return a report."""
    cluster.until_up()
    clients = Clients(cluster, builds=builds, moves=moves, is_enough=is_enough)
    begun_s = time.monotonic()
    with Reaper(cluster, every_s=every_s).at_work():
        clients.run()
    took_s = time.monotonic() - begun_s
    cluster.until_up()
    settled_s = cluster.settle()
    late = wait_for_power_states(cluster)
    problems = problems_of(cluster, promised=clients.promised, ended=clients.ended, sizes=clients.sizes())
    assert not problems, "\n".join([*problems, *(str(each) for each in cluster.stories(" ".join(problems))[:5])])
    assert cluster.audited() == ""
    statuses = Counter(each["status"] for each in cluster.instances().values())
    for uuid, each in cluster.instances().items():
        if each["status"] != "DELETED":
            assert cluster.asked("DELETE", f"/v1/instances/{uuid}", key=f"end {uuid}")[0] == 202
    cluster.settle()
    assert {each["status"] for each in cluster.instances().values()} == {"DELETED"}
    assert not any(usages_and_sums(cluster)[0].values())
    assert not any(guests_on(cluster.guests).values())
    assert cluster.audited() == ""
    kills = {each.log.stem: each.kills for each in cluster.programs}
    problems = "".join(f"\n  {count} {problem}" for problem, count in clients.problems.most_common())
    return (
        f"{len(clients.promised)} built, {dict(clients.accepted)} accepted, {dict(clients.refused)} refused in "
        f"{took_s:.0f} s, settled {settled_s:.1f} s later, of {late} it was said later whether they run; "
        f"outcomes {dict(clients.outcomes)}; {dict(statuses)}; killed {kills}{problems}"
    )


@contextmanager
def cluster_in(folder, **more):
    """Yield a cluster and stop it at the end."""
    cluster = Cluster(folder, **more)
    try:
        yield cluster
    finally:
        cluster.stop()


def is_enough(clients):
    """Return whether each program was killed five times, all twenty times, and each move was done three times."""
    kills = clients.cluster.kills().values()
    return min(kills) >= 5 and sum(kills) >= 20 and all(clients.outcomes[act, "done"] >= 3 for act in MOVES)


def test_small_cluster_settles_after_each_part_is_killed(tmp_path):
    with cluster_in(tmp_path, processes=2, hosts=3) as cluster:
        assert "built" in run_with_kills(cluster, builds=8, moves=4, every_s=(0.8, 1.2))


@pytest.mark.soak
def test_cluster_on_sqlite_settles_after_a_hundred_builds_and_fifty_moves(tmp_path):
    with cluster_in(tmp_path) as cluster:
        print("\nSQLite:", run_with_kills(cluster, builds=100, moves=50, every_s=(0.5, 1.0), is_enough=is_enough))


@pytest.mark.soak
def test_cluster_on_postgresql_settles_after_a_hundred_builds_and_fifty_moves(tmp_path, postgres_url):
    with cluster_in(tmp_path, database=postgres_url) as cluster:
        print("\nPostgreSQL:", run_with_kills(cluster, builds=100, moves=50, every_s=(0.5, 1.0), is_enough=is_enough))
