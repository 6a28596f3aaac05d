"""A Galera cluster: several nodes never break a rule of the store, and the loss of a node loses no acknowledged commit.

All store tests run on a node of a cluster with ``pytest --galera -k mariadb tests/contract``.
"""

import random
import threading
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.work.work_rows import Put
from roost.model.writes import DropGroup, InstanceRow, PutGroup
from roost.store.audit import audit
from roost.store.backup import backup, restore
from roost.store.mariadb.store import MariaStore
from tests.contract.stores import (
    VCPU,
    claim,
    commit,
    host,
    inventory,
    item,
    offer,
    provider,
    release,
    state,
    uuid_of,
)
from tests.support.conductors.work_rows import lease, operation
from tests.support.databases import galera, mariadb
from tests.support.missing_programs import skip_test

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster():
    if not galera.IS_AVAILABLE:
        skip_test(galera.MISSING)
    with galera.cluster() as running:
        yield running


@pytest.fixture
def nodes(cluster, request):
    """Return the URLs of a new database on three nodes; the first has the other nodes as its next hosts."""
    cluster.wait(3)
    name = f"roost{abs(hash(request.node.name))}"
    cluster.nodes[0].server.create_databases(name)
    return [cluster.url(name), cluster.url_of(name, cluster.nodes[1]), cluster.url_of(name, cluster.nodes[2])]


def run_together(*acts):
    """Run functions in threads that start at the same moment; return their results."""
    start, results = threading.Barrier(len(acts)), [None] * len(acts)

    def run(at):
        start.wait()
        results[at] = acts[at]()

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_another_node_reads_each_acknowledged_commit(nodes):
    with closing(MariaStore(nodes[0])) as store, closing(MariaStore(nodes[1])) as other:
        assert other._link.connection.server.is_cluster
        assert commit(store, item(provider(1), offer(1, cpu=1000))) == [""]
        list(other.load().writes)
        for number in range(1, 101):
            assert commit(store, item(claim(number, (inventory(1), 1)), work=[Put(lease(f"l{number}"))])) == [""]
            assert len(other.changes()) == 1
        assert state(other) == state(store)


def test_writers_on_all_nodes_never_overbook(nodes):
    with closing(MariaStore(nodes[0])) as store:
        offers = [item(provider(one), offer(one, cpu=12), host(one)) for one in range(1, 7)]
        assert set(commit(store, item(VCPU), *offers)) == {""}

    def work(number):
        draw, held, accepted = random.Random(number), [], 0
        with closing(MariaStore(nodes[number])) as own:
            for at in range(40):
                one = claim(number * 1000 + at, *((inventory(on), 1) for on in draw.sample(range(1, 7), 2)))
                items = [item(one), *([item(release(held.pop()))] if held and at % 4 == 0 else [])]
                if not commit(own, *items)[0]:
                    held.append(one)
                    accepted += 1
        return accepted

    assert sum(run_together(*(lambda number=number: work(number) for number in range(3)))) > 30
    for url in nodes:
        assert audit(url) == []


def test_group_is_claimed_or_deleted_on_two_nodes_never_both(nodes):
    with closing(MariaStore(nodes[0])) as one, closing(MariaStore(nodes[1])) as other:
        assert commit(one, item(VCPU, provider(1), offer(1, cpu=100), host(1))) == [""]
        for number in range(1, 21):
            assert commit(one, item(PutGroup(number, uuid_of("g", number), "g", "soft-affinity", 1))) == [""]
            claimed = claim(number, (inventory(1), 1))
            claimed = msgspec.structs.replace(claimed, instances=[InstanceRow(number, 1, 1, 0, number, 0, 0)])
            verdicts = run_together(
                lambda claimed=claimed: commit(one, item(claimed))[0],
                lambda number=number: commit(other, item(DropGroup(number)))[0],
            )
            assert verdicts in (["", "in_use"], ["missing", ""]), verdicts
    assert audit(nodes[2]) == []


def test_unchanged_row_of_a_commit_conflicts_with_its_change_on_another_node(nodes):
    with closing(MariaStore(nodes[0])) as one, closing(MariaStore(nodes[1])) as other:
        for number in range(1, 21):
            names = [f"a{number}", f"b{number}"]
            assert commit(one, item(work=[Put(lease(name)) for name in names])) == [""]

            # Each commit changes one row, and requires that the other is unchanged.
            def change(store, mine, theirs):
                puts = [Put(lease(mine, version=2), 1), Put(lease(theirs), 1)]
                return commit(store, item(work=puts))[0]

            verdicts = run_together(
                lambda names=names, change=change: change(one, *names),
                lambda names=names, change=change: change(other, *names[::-1]),
            )
            assert sorted(verdicts) == ["", "generation"], verdicts


def test_operation_is_taken_on_one_node(nodes):
    with closing(MariaStore(nodes[0])) as one, closing(MariaStore(nodes[1])) as other:
        # The loser of a race must notice it at each of its statements, so there are many races.
        for number in range(1, 101):
            assert commit(one, item(work=[Put(operation(number))])) == [""]

            def take(store, owner, number=number):
                return commit(store, item(work=[Put(operation(number, owner=owner, version=2), 1)]))[0]

            verdicts = run_together(lambda take=take: take(one, "a"), lambda take=take: take(other, "b"))
            assert sorted(verdicts) == ["", "generation"]


def test_creations_wait_for_those_of_other_nodes(nodes):
    stores = [MariaStore(url) for url in nodes]
    inside, seen = [], []

    def create(store):
        for _ in range(5):
            with store.order_creations():
                inside.append(store)
                seen.append(len(inside))
                number = store.reserve("provider", 1)
                assert commit(store, item(provider(number))) == [""]
                inside.remove(store)

    run_together(*(lambda store=store: create(store) for store in stores))
    for store in stores:
        store.close()
    assert set(seen) == {1}


def test_backup_is_restored_on_a_node_and_other_nodes_reload(nodes, tmp_path):
    path = Path(tmp_path / "one.backup")
    with closing(MariaStore(nodes[0])) as store, closing(MariaStore(nodes[1])) as other:
        assert commit(store, item(VCPU, provider(1), offer(1, cpu=8), host(1))) == [""]
        before = state(store)
        list(other.load().writes)
        backup(nodes[0], path, progress=lambda *_: None)
        assert commit(store, item(provider(2))) == [""]
        restore(nodes[0], path, may_replace=True, progress=lambda *_: None)
        assert other.changes() is None
        assert state(other) == before
        assert commit(other, item(provider(3))) == [""]
    assert audit(nodes[2]) == []


def test_clients_leave_a_node_that_refuses_queries(cluster, nodes):
    with closing(MariaStore(nodes[0])) as store:
        assert commit(store, item(VCPU, provider(1), offer(1, cpu=8), host(1))) == [""]
        mariadb.execute(cluster.socket_url(0, ""), "SET GLOBAL wsrep_reject_queries = ALL")
        try:
            assert commit(store, item(claim(1, (inventory(1), 1)))) == [""]
            assert store._link.connection.port == cluster.nodes[1].port
        finally:
            mariadb.execute(cluster.socket_url(0, ""), "SET GLOBAL wsrep_reject_queries = NONE")
    assert audit(nodes[1]) == []


def test_loss_of_the_writers_node_loses_nothing(cluster, nodes):
    settings = StoreSettings(wait_s=30.0, deadline_s=60.0)  # The cluster of the tests is patient with a silent node.
    writer = MariaStore(nodes[0], settings=settings)
    with closing(writer) as store, closing(MariaStore(nodes[1], settings=settings)) as reader:
        assert commit(store, item(VCPU, provider(1), offer(1, cpu=10_000), host(1))) == [""]
        list(reader.load().writes)
        killer = threading.Timer(0.3, cluster.kill, args=(0,))
        killer.start()
        try:
            for number in range(1, 401):
                assert commit(store, item(claim(number, (inventory(1), 1)))) == [""]
            killer.join()
            cluster.wait(2, without=0)
            assert store._link.connection.port == cluster.nodes[1].port
            assert len(reader.changes()) == 400
            assert {row[0] for row in state(reader)["consumers"]} == set(range(1, 401))
            assert audit(nodes[1]) == []
        finally:
            killer.join()
            cluster.start(0)  # Other tests follow, in any order.
