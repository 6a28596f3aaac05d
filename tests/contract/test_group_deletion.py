"""The deletion of server groups races with claims: no instance is ever in a missing group."""

import random
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import psycopg
import pytest

from roost.app import Roost, audit_database, open_roost
from roost.engine.columns.apply import apply
from roost.engine.columns.state import State
from roost.errors import NotFound
from roost.model.fleet import Departure
from roost.model.group import ServerGroup
from roost.model.settings.roost_settings import Settings
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.writes import DropGroup, InstanceRow, Item, Place, PutGroup, PutSymbol, Refusal
from roost.placement.current import Current
from roost.simulator.stable_uuids import uuid_of
from roost.store import backends, snapshot_program
from roost.store.audit import audit
from roost.store.backends import open_store, upgrade
from roost.store.postgresql.store import PostgresStore
from roost.store.postgresql.versions.upgrade import upgrade_postgresql
from roost.store.sqlite.upgrade import upgrade_sqlite
from tests.contract.races import RivalStore
from tests.contract.stores import CPU, MemoryWorld, claim, commit, host, inventory, item, offer, provider
from tests.contract.stores import uuid_of as bytes_of
from tests.support.fleets.products import fleet, kill, request, settings_for, worker
from tests.support.servers.servers import ADMIN, serve
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
ROUNDS = 60


def new_groups(count: int) -> list[ServerGroup]:
    return [ServerGroup(uuid=uuid_of("group", str(at)), policy=POLICIES[at % len(POLICIES)]) for at in range(count)]


def delete_groups(config: str) -> None:
    """Delete each group of a database in a random order, unless it has instances; print the deleted ones."""
    with open_roost(Path(config)) as product:
        groups = list(product.state.groups.values())
        random.Random(1).shuffle(groups)
        print("ready", flush=True)
        sys.stdin.readline()
        current = product.fleet._journal
        for group in groups:
            refusal = current.commit([Item((DropGroup(group.id),))])[0]
            assert refusal in {None, Refusal("in_use", "server_group", group.id)}, refusal
            if refusal is None:
                print(group.uuid)
    print(flush=True)


def claim_in_groups(config: str) -> None:
    """Place an instance in each group of a database, in a random order; print the groups with an instance."""
    with open_roost(Path(config)) as product:
        groups = [group.uuid for group in product.state.groups.values()]
        random.Random(2).shuffle(groups)
        print("ready", flush=True)
        sys.stdin.readline()
        for at in range(0, len(groups), 4):
            acts = [request(group=uuid) for uuid in groups[at : at + 4]]
            for act, result in zip(acts, product.outcomes(acts), strict=True):
                if isinstance(result, NotFound):
                    assert str(result) == f"no such server group: {act.group}"
                else:
                    assert result.is_granted, result
                    print(act.group)
    print(flush=True)


def test_processes_that_claim_and_delete_agree_on_each_group(postgres_url, tmp_path):
    config = settings_for(postgres_url, tmp_path)
    with open_roost(config) as product:
        product.install(fleet(4, vcpus=10_000, groups=new_groups(400)))
    with ExitStack() as stack:
        children = []
        for function in ("delete_groups", "claim_in_groups"):
            children.append(worker(f"tests.contract.test_group_deletion:{function}", str(config)))
            stack.callback(kill, children[-1])
        for child in children:
            assert child.stdout.readline() == "ready\n"
        for child in children:
            child.stdin.write("go\n")
        deleted, joined = ({line.strip() for line in iter(child.stdout.readline, "\n")} for child in children)
        assert [child.wait(60) for child in children] == [0, 0]
    assert deleted
    assert joined
    assert not deleted & joined
    assert deleted | joined == {group.uuid for group in new_groups(400)}
    assert audit_database(config, None, {}) == []
    with open_roost(config) as product:
        assert {group.uuid: len(group.members) for group in product.state.groups.values()} == dict.fromkeys(joined, 1)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_clients_that_claim_and_delete_over_http_agree_on_each_group(kind, request, tmp_path):
    """On SQLite one server decides and deletes; on PostgreSQL one server decides, and another deletes."""
    is_shared = kind == "postgresql"
    url = request.getfixturevalue("postgres_url") if is_shared else str(tmp_path / "roost.db")
    groups = [group.uuid for group in new_groups(ROUNDS)]
    with Roost(open_store(url, settings=StoreSettings()), Settings()) as product:
        product.install(fleet(3, vcpus=1000, groups=new_groups(ROUNDS)))
    with ExitStack() as stack:
        folders = [tmp_path, tmp_path / "other"] if is_shared else [tmp_path]
        words = ("--database", url) if is_shared else ()
        servers = []
        for folder in folders:
            folder.mkdir(exist_ok=True)
            servers.append(stack.enter_context(serve(*words, noun="up", folder=folder)))
        first, last = servers[0], servers[-1]
        meeting = threading.Barrier(2, timeout=60)

        def send_to_each_group(seed, send):
            jitter, answers = random.Random(seed), {}
            for uuid in groups:
                meeting.wait()  # Both requests about a group are sent at almost the same time.
                time.sleep(jitter.random() * 0.004)
                answers[uuid] = send(uuid)
            return answers

        def delete(uuid):
            return last.ask("DELETE", f"/v1/groups/{uuid}", headers=ADMIN)

        def decide(uuid):
            flavor = {"name": "f", "vcpus": 1, "memory_mb": 1}
            return first.ask("POST", "/v1/decisions", {"flavor": flavor, "group": uuid})

        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(send_to_each_group, seed, send) for seed, send in enumerate((delete, decide))]
            deletions, decisions = (run.result() for run in runs)
        for uuid in groups:
            (deleted, _, problem), (decided, _, decision) = deletions[uuid], decisions[uuid]
            if deleted == 204:
                assert decided in {400, 404}, decision
                assert "no such server group" in decision["detail"] or "there is no server group" in decision["detail"]
            else:
                assert (deleted, problem["detail"]) == (
                    409,
                    f"server group {uuid} has 1 instance: delete them first",
                )
                assert decided == 201, decision
        left = {each["uuid"] for each in last.ask("GET", "/v1/groups?limit=1000")[2]["groups"]}
        assert left == {uuid for uuid in groups if deletions[uuid][0] == 409}
        assert 0 < len(left) < ROUNDS
        assert last.ask("GET", "/v1/audit")[2]["findings"] == []
    assert audit(url) == []


def test_claim_that_loses_to_a_deletion_fails_and_leaves_nothing(postgres_url, tmp_path):
    config = settings_for(postgres_url, tmp_path)
    store = RivalStore(postgres_url)
    with Roost(store, Settings()) as first, open_roost(config) as second:
        first.install(fleet(2, vcpus=4, groups=new_groups(4)))
        for group in new_groups(4):
            number = first.state.groups_by_uuid[group.uuid].id
            store.before = lambda number=number: second.fleet._journal.write([DropGroup(number)])
            with pytest.raises(NotFound, match=f"no such server group: {group.uuid}"):
                first.decide(request(group=group.uuid))
        assert not first.state.holders
        assert not first.state.groups
        assert first.decide(request(4)).is_granted
    assert audit_database(config, None, {}) == []


def test_deletion_that_loses_to_a_claim_is_refused(postgres_url, tmp_path):
    config = settings_for(postgres_url, tmp_path)
    store = RivalStore(postgres_url)
    with open_roost(config) as second, closing(store):
        second.install(fleet(2, vcpus=4, groups=new_groups(4)))
        current = Current(store)
        for group in new_groups(4):
            store.before = lambda uuid=group.uuid: second.decide(request(group=uuid))
            number = current.state.groups_by_uuid[group.uuid].id
            assert current.commit([Item((DropGroup(number),))]) == [Refusal("in_use", "server_group", number)]
            current.refresh()
            assert sum(current.state.groups[number].members.values()) == 1
    assert audit_database(config, None, {}) == []


LOCK = "SELECT id FROM server_group WHERE id = 1 FOR {}"


@pytest.mark.parametrize("is_structural", [False, True])
@pytest.mark.parametrize("is_deleted", [True, False])
def test_claim_waits_for_a_deletion_in_flight(postgres_url, is_structural, is_deleted):
    with closing(PostgresStore(postgres_url)) as store:
        names = PutSymbol("resource_class", CPU, "VCPU")
        assert commit(store, item(names, provider(1), offer(1, cpu=8), host(1))) == [""]
        assert commit(store, item(PutGroup(1, bytes_of("g"), "g", "anti-affinity", 1))) == [""]
        joining = claim(1, (inventory(1), 1), places=[Place(1, 1, 0, 1, 1)])
        more = [PutGroup(2, bytes_of("h"), "h", "affinity", 1)] if is_structural else []
        with psycopg.connect(postgres_url) as rival, ThreadPoolExecutor(1) as pool:
            rival.execute(LOCK.format("UPDATE").encode())
            rival.execute("DELETE FROM server_group WHERE id = 1")
            waiting = pool.submit(commit, store, item(joining, *more))
            wait_until(lambda: is_blocked(postgres_url))
            (rival.commit if is_deleted else rival.rollback)()
            assert waiting.result(30) == (["missing"] if is_deleted else [""])
    assert audit(postgres_url) == []


@pytest.mark.parametrize("is_claimed", [True, False])
def test_deletion_waits_for_a_claim_in_flight(postgres_url, is_claimed):
    with closing(PostgresStore(postgres_url)) as store:
        assert commit(store, item(PutGroup(1, bytes_of("g"), "g", "soft-affinity", 1))) == [""]
        with psycopg.connect(postgres_url) as rival, ThreadPoolExecutor(1) as pool:
            rival.execute(LOCK.format("KEY SHARE").encode())
            row = msgspec.structs.astuple(InstanceRow(1, 1, 1, 0, 1))
            rival.execute("INSERT INTO instance VALUES (%s, %s, %s, %s, %s, %s, %s)", row)
            waiting = pool.submit(commit, store, item(DropGroup(1)))
            wait_until(lambda: is_blocked(postgres_url))
            (rival.commit if is_claimed else rival.rollback)()
            assert waiting.result(30) == (["in_use"] if is_claimed else [""])


def is_blocked(url):
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return connection.execute(query).fetchone()[0] > 0


def upgraded(kind, request, tmp_path):
    """Return the URL of a database of schema 0007 with two groups and one instance, after its upgrade."""
    rows = (
        f"INSERT INTO server_group VALUES (1, {{0}}{bytes_of(1).hex()}{{1}}, 'full', 'soft-affinity', 1)",
        f"INSERT INTO server_group VALUES (2, {{0}}{bytes_of(2).hex()}{{1}}, 'empty', 'anti-affinity', 1)",
        "INSERT INTO place VALUES (2, 7, 0, 0)",
        "INSERT INTO instance VALUES (1, 1, 1, 0, 1, 0, 0)",
    )
    if kind == "sqlite":
        path = tmp_path / "roost.db"
        upgrade_sqlite(path, to="0007")
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            for row in rows:
                database.execute(row.format("x'", "'"))
        upgrade(path)
        return str(path)
    url = request.getfixturevalue("postgres_url")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    upgrade_postgresql(url, to="0007")
    with psycopg.connect(url, autocommit=True) as connection:
        for row in rows:
            connection.execute(row.format("'", "'").encode())
    upgrade(url)
    return url


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_groups_of_an_older_database_can_be_deleted_after_its_upgrade(kind, request, tmp_path):
    url = upgraded(kind, request, tmp_path)
    with closing(open_store(url, settings=StoreSettings())) as store:
        assert commit(store, item(DropGroup(1)), item(DropGroup(2))) == ["in_use", ""]
    with backends.database_at(url).audit_query() as query:
        assert list(query("SELECT name FROM server_group")) == [("full",)]
        assert list(query("SELECT * FROM place")) == []
        catalogue = ("pg_indexes", "indexname") if kind == "postgresql" else ("sqlite_master", "name")
        found = list(query("SELECT 1 FROM {} WHERE {} = 'instance_group'".format(*catalogue)))
        assert len(found) == 1


def test_decisions_of_a_deleted_group_replay_after_a_restart_and_a_snapshot(world):
    (group,) = new_groups(2)[1:]
    with Roost(world.open(), Settings()) as roost:
        roost.install(fleet(2, vcpus=4, groups=[group]))
        found = [roost.decide(request(group=group.uuid, count=count)) for count in (2, 1)]
        assert [each.outcome for each in found] == ["granted", "refused"]
        roost.work([Departure(instance_uuids=tuple(pick.instance_uuid for pick in found[0].picks))])
        roost.fleet._journal.write([DropGroup(roost.state.groups_by_uuid[group.uuid].id)])
        past = State()
        for write in roost._store.past(roost.state.position, roost._store.visible_changes).writes:
            apply(past, write)
        assert past.groups == {} == roost.state.groups
    if not isinstance(world, MemoryWorld):
        snapshot_program.write_snapshot(world.url)
    with Roost(world.open(), Settings()) as roost:
        assert roost.state.groups == {}
        for decision in (*found, roost.decide(request())):
            assert roost.replay(decision.uuid).is_same
