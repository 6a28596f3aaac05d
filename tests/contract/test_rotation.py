"""Random crashes and failovers of PostgreSQL: the state of each process equals the database."""

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
from tests.support.databases.standbys import ignore_timelines
from tests.support.fleets.worlds import digest
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

PROVIDERS, TOTAL = 4, 100_000
SETTINGS = StoreSettings(deadline_s=0.5, wait_s=2)


class Process:
    """One Roost process: its writes, and the acknowledged results."""

    def __init__(self, url, draw):
        self.store = PostgresStore(url, settings=SETTINGS)
        self.current = Current(self.store)
        self._draw = draw
        self.held = {}  # acknowledged claims without a release, by uuid
        self.released = set()
        self.claim_count = 0  # acknowledged claims

    def act(self):
        """Claim, release, send an impossible claim, or refresh; the outcome may stay unknown."""
        draw = self._draw.random()
        try:
            self.current.refresh()  # As before each request.
            if draw < 0.2:
                return
            if draw < 0.5 and self.held:
                self._release(self._draw.choice(sorted(self.held)))
            elif draw < 0.6:
                self._claim((inventory(1), TOTAL + 1))
            else:
                self._claim(*((inventory(one), 1) for one in self._draw.sample(range(1, PROVIDERS + 1), 2)))
        except Unavailable:
            return  # The outcome of a commit is unknown.

    def _claim(self, *takes):
        one = claim(self.current.new_id("consumer"), *takes, instance=False)
        # Numbers are reused if the standby missed them; the uuid identifies the claim.
        uuid = uuid_of("claim", self._draw.getrandbits(60))
        one.consumers[0] = msgspec.structs.replace(one.consumers[0], uuid=uuid)
        if self.current.commit([item(one)]) == [None]:
            self.held[uuid] = one
            self.claim_count += 1

    def _release(self, uuid):
        one = self.held.pop(uuid)
        if self.current.commit([item(release(one))]) == [None]:
            self.released.add(uuid)

    def refresh(self):
        """Refresh, with repetitions as by a client; return a digest of the state."""

        def is_refreshed():
            try:
                self.current.refresh()
            except Unavailable:
                return False
            return True

        wait_until(is_refreshed)
        return digest(self.current.state)

    def work_until(self, stop):
        """Return a thread that acts until an event, and a list with one entry per act."""
        done = []

        def run():
            while not stop.is_set():
                self.act()
                done.append(1)

        return threading.Thread(target=run), done


def check(servers, processes, *, is_synchronous):
    """Compare the state of processes with the tables and with the acknowledged results."""
    known = [process.refresh() for process in processes]
    with closing(PostgresStore(servers.url, settings=SETTINGS)) as fresh:
        truth = digest(Current(fresh).state)
    assert known == [truth] * len(processes)
    assert audit(servers.url) == []
    if is_synchronous:
        for process in processes:
            assert set(process.held) <= set(truth["holders"]), "an acknowledged claim is gone"
            assert not process.released & set(truth["holders"]), "an acknowledged release was undone"


def disturb(servers, processes, draw, *, is_synchronous):
    """Fail over to a standby in one of several ways."""
    first, *others = processes
    kind = draw.choice(["starved", "busy", "frozen", "clean"])
    stop = threading.Event()
    if kind == "starved":
        servers.starve()
        servers.burn(draw.randrange(50))
        # A commit that waits for the standby ends at its deadline.
        for process in processes[:1] if is_synchronous else processes:
            for _ in range(2 if is_synchronous else draw.randrange(10)):
                process.act()
        for process in processes:
            process.refresh()
        servers.fail_over(is_clean=False)
        return
    worker, done = first.work_until(stop)
    worker.start()
    try:
        count = draw.randrange(1, 40)
        wait_until(lambda: len(done) > count)
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
            offers = [item(provider(one), offer(one, cpu=TOTAL)) for one in range(1, PROVIDERS + 1)]
            assert processes[0].current.commit([item(VCPU), *offers]) == [None] * (1 + PROVIDERS)
            for _ in range(rounds):
                for _ in range(draw.randrange(20)):
                    draw.choice(processes).act()
                disturb(servers, processes, draw, is_synchronous=is_synchronous)
                check(servers, processes, is_synchronous=is_synchronous)
                for _ in range(draw.randrange(5)):  # These reuse transaction numbers.
                    draw.choice(processes).act()
                check(servers, processes, is_synchronous=is_synchronous)
        finally:
            for process in processes:
                process.store.close()
    return processes


@pytest.fixture(params=[True, False], ids=["timelines", "vectors alone"])
def checks(request, monkeypatch):
    """Check timelines and vectors, or vectors alone."""
    if not request.param:
        ignore_timelines(monkeypatch)


@pytest.mark.usefixtures("checks")
@pytest.mark.parametrize("is_synchronous", [True, False])
def test_processes_match_the_database_after_each_failover(is_synchronous):
    processes = run(1, 3, is_synchronous=is_synchronous)
    assert all(process.claim_count for process in processes)


@pytest.mark.soak
@pytest.mark.usefixtures("checks")
@pytest.mark.parametrize("is_synchronous", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_processes_match_the_database_after_many_failovers(seed, is_synchronous):
    processes = run(seed, 20, is_synchronous=is_synchronous)
    assert all(process.claim_count for process in processes)
