"""PostgreSQL servers die and take over at random: what processes know is what the database holds."""

import random
import threading
from contextlib import closing

import msgspec
import pytest

from roost.errors import Unavailable
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.placement.current import Current
from roost.store.audit import audit
from roost.store.postgresql.store import PostgresStore
from tests.contract.stores import VCPU, claim, inventory, item, offer, provider, release, uuid_of
from tests.support.databases.rotation import rotation
from tests.support.fleets.worlds import digest
from tests.support.waiting import until

pytestmark = pytest.mark.long

PROVIDERS, ROOM = 4, 100_000
SETTINGS = StoreSettings(deadline_s=0.5, wait_s=2)


class Process:
    """What one process of Roost does to the database, and what it was told of that."""

    def __init__(self, url, draw):
        self.store = PostgresStore(url, settings=SETTINGS)
        self.current = Current(self.store)
        self._draw = draw
        self.held = {}  # claims that were acknowledged and not released, by uuid
        self.released = set()
        self.claim_count = 0  # that were acknowledged

    def act(self):
        """Claim, release what was claimed, be refused, or look; the outcome may stay unknown."""
        draw = self._draw.random()
        try:
            self.current.refresh()  # As before each request.
            if draw < 0.2:
                return
            if draw < 0.5 and self.held:
                self._release(self._draw.choice(sorted(self.held)))
            elif draw < 0.6:
                self._claim((inventory(1), ROOM + 1))
            else:
                self._claim(*((inventory(one), 1) for one in self._draw.sample(range(1, PROVIDERS + 1), 2)))
        except Unavailable:
            return  # The outcome of a commit is unknown.

    def _claim(self, *takes):
        one = claim(self.current.new_id("consumer"), *takes, instance=False)
        # Numbers come again where a standby did not hear of them: the uuid is what a client knows.
        uuid = uuid_of("claim", self._draw.getrandbits(60))
        one.consumers[0] = msgspec.structs.replace(one.consumers[0], uuid=uuid)
        if self.current.commit([item(one)]) == [None]:
            self.held[uuid] = one
            self.claim_count += 1

    def _release(self, uuid):
        one = self.held.pop(uuid)
        if self.current.commit([item(release(one))]) == [None]:
            self.released.add(uuid)

    def look(self):
        """Make one request, and repeat it as clients do."""

        def answered():
            try:
                self.current.refresh()
            except Unavailable:
                return False
            return True

        until(answered)
        return digest(self.current.state)

    def work_until(self, stop):
        """Return a thread that claims until an event, and how often it was answered."""
        done = []

        def run():
            while not stop.is_set():
                self.act()
                done.append(1)

        return threading.Thread(target=run), done


def check(servers, processes, *, is_synchronous):
    """Compare what processes know with the tables, and with what clients were told."""
    known = [process.look() for process in processes]
    with closing(PostgresStore(servers.url, settings=SETTINGS)) as fresh:
        truth = digest(Current(fresh).state)
    assert known == [truth] * len(processes)
    assert audit(servers.url) == []
    if is_synchronous:
        for process in processes:
            assert set(process.held) <= set(truth["holders"]), "an acknowledged claim is gone"
            assert not process.released & set(truth["holders"]), "an acknowledged release was undone"


def disturb(servers, processes, draw, *, is_synchronous):
    """Let a standby take over in one of the ways in which it does."""
    first, *others = processes
    kind = draw.choice(["starved", "busy", "frozen", "clean"])
    stop = threading.Event()
    if kind == "starved":
        servers.starve()
        servers.burn(draw.randrange(50))
        # A commit that waits for the standby ends with its deadline.
        for process in processes[:1] if is_synchronous else processes:
            for _ in range(2 if is_synchronous else draw.randrange(10)):
                process.act()
        for process in processes:
            process.look()
        servers.fail_over(is_clean=False)
        return
    worker, done = first.work_until(stop)
    worker.start()
    try:
        count = draw.randrange(1, 40)
        until(lambda: len(done) > count)
        if kind == "frozen":
            servers.freeze()
        servers.fail_over(is_clean=kind == "clean")
        for process in others:
            process.act()
    finally:
        stop.set()
        worker.join()


def run(seed, rounds, *, is_synchronous):
    draw = random.Random(f"{seed} {is_synchronous}")
    with rotation(is_synchronous=is_synchronous) as servers:
        processes = [Process(servers.url, draw) for _ in range(2)]
        try:
            offers = [item(provider(one), offer(one, cpu=ROOM)) for one in range(1, PROVIDERS + 1)]
            assert processes[0].current.commit([item(VCPU), *offers]) == [None] * (1 + PROVIDERS)
            for _ in range(rounds):
                for _ in range(draw.randrange(20)):
                    draw.choice(processes).act()
                disturb(servers, processes, draw, is_synchronous=is_synchronous)
                check(servers, processes, is_synchronous=is_synchronous)
                for _ in range(draw.randrange(5)):  # The numbers of transactions that come again.
                    draw.choice(processes).act()
                check(servers, processes, is_synchronous=is_synchronous)
        finally:
            for process in processes:
                process.store.close()
    return processes


@pytest.mark.parametrize("is_synchronous", [True, False])
def test_processes_know_what_the_database_holds_after_each_failover(is_synchronous):
    processes = run(1, 3, is_synchronous=is_synchronous)
    assert all(process.claim_count for process in processes)


@pytest.mark.soak
@pytest.mark.parametrize("is_synchronous", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_processes_know_what_the_database_holds_after_many_failovers(seed, is_synchronous):
    processes = run(seed, 20, is_synchronous=is_synchronous)
    assert all(process.claim_count for process in processes)
