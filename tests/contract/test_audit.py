"""The audit finds every kind of damage, in both databases."""

import json
import sqlite3
from contextlib import closing

import msgspec
import psycopg
import pytest

from roost.model.names import uuid_text
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.work.work_rows import Put
from roost.model.writes import Place, PutGroup, PutMembership, PutSymbol, PutTraits
from roost.store.audit import Finding, audit, orphans
from roost.store.backends import open_store
from tests.contract.stores import (
    SHARED,
    URL_FIXTURES,
    VCPU,
    claim,
    commit,
    host,
    inventory,
    item,
    offer,
    provider,
    state,
    uuid_of,
)
from tests.support.conductors.work_rows import migration, status
from tests.support.databases import mariadb

_CPU_1 = (1 << 16) + 1


@pytest.fixture(params=["sqlite", *SHARED])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "roost.db")
    return request.getfixturevalue(URL_FIXTURES[request.param])


@pytest.fixture
def database(url):
    """Return the URL of a sound database: three hosts in two racks, and one group of each kind."""
    with closing(open_store(url, settings=StoreSettings())) as store:
        names = [VCPU, PutSymbol("trait", 70_000, "CUSTOM_T")]
        assert commit(store, item(*names, PutSymbol("consumer_type", 1 << 32, "INSTANCE"))) == [""]
        hosts = [
            item(provider(one), offer(one, cpu=8), PutTraits(one, 1, [70_000]), host(one, rack=f"r{one // 2}"))
            for one in (1, 2, 3)
        ]
        assert commit(store, *hosts) == [""] * 3
        policies = ("anti-affinity", "affinity", "fault-domain", "soft-affinity")
        groups = [PutGroup(at, uuid_of(at), "g", policy, 1) for at, policy in enumerate(policies, start=1)]
        assert commit(store, item(*groups, provider(4, parent=provider(1)), PutMembership(1, 2, [5]))) == [""]
        claims = [
            claim(1, (inventory(1), 2), places=[Place(1, 1, 0, 1, 1)]),
            claim(2, (inventory(1), 2), places=[Place(1, 2, 0, 1, 1)]),
            claim(3, (inventory(1), 2), places=[Place(2, 0, 1, 1, 9)]),
            claim(4, (inventory(1), 1), places=[Place(2, 0, 1, 1, 9)]),
            claim(5, (inventory(2), 1), places=[Place(3, 1, 7, 1, 9)]),
            claim(6, (inventory(2), 1), places=[Place(3, 2, 8, 1, 9)]),
        ]
        on = {2: 2, 5: 2, 6: 1}  # consumer -> host, if not host 1
        placed = []
        for number, one in enumerate(claims, start=1):
            row = msgspec.structs.replace(one.instances[0], host_id=on.get(number, 1))
            placed.append(msgspec.structs.replace(one, instances=[row]))
        assert commit(store, *map(item, placed)) == [""] * 6
    return url


def damage(url, *statements):
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
    elif "://" in url:
        for statement in statements:
            mariadb.execute(url, statement)
    else:
        with closing(sqlite3.connect(url, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)


def test_a_sound_database_has_no_findings(database):
    assert audit(database) == []


@pytest.mark.parametrize(
    ("check", "statements"),
    [
        ("used", [f"UPDATE inventory SET used = used + 1 WHERE id = {_CPU_1}"]),
        ("used", ["DELETE FROM allocation WHERE consumer_id = 1"]),
        ("nameless class", ["UPDATE symbol SET kind = 'dropped resource_class' WHERE id = 1"]),
        ("nameless trait", ["DELETE FROM symbol WHERE id = 70000"]),
        ("nameless type", ["UPDATE consumer SET type_id = 7 WHERE id = 1"]),
        ("capacity", [f"UPDATE inventory SET total = 3 WHERE id = {_CPU_1}"]),
        ("capacity", [f"UPDATE inventory SET reserved = 5 WHERE id = {_CPU_1}"]),
        ("capacity", [f"UPDATE inventory SET allocation_ratio = 0.5 WHERE id = {_CPU_1}"]),
        ("units", [f"UPDATE inventory SET min_unit = 2 WHERE id = {_CPU_1}"]),
        ("units", [f"UPDATE inventory SET max_unit = 1 WHERE id = {_CPU_1}"]),
        ("units", [f"UPDATE inventory SET step_size = 2 WHERE id = {_CPU_1}"]),
        ("units", ["UPDATE allocation SET amount = 0 WHERE consumer_id = 1"]),
        ("ownerless allocation", ["DELETE FROM consumer WHERE id = 1"]),
        ("ownerless instance", ["DELETE FROM consumer WHERE id = 1"]),
        ("allocation of nothing", [f"DELETE FROM inventory WHERE id = {_CPU_1}"]),
        ("empty consumer", ["DELETE FROM allocation WHERE consumer_id = 1"]),
        ("place", ["UPDATE place SET members = 2 WHERE group_id = 1 AND scope = 1"]),
        ("place", ["DELETE FROM place WHERE group_id = 2"]),
        ("place", ["DELETE FROM instance WHERE consumer_id = 3"]),
        ("group", ["UPDATE instance SET host_id = 1 WHERE consumer_id = 2"]),
        ("group", ["UPDATE instance SET host_id = 3 WHERE consumer_id = 4"]),
        ("group", ["UPDATE instance SET host_id = 3 WHERE consumer_id = 6"]),
        ("missing group", ["DELETE FROM server_group WHERE id = 1"]),
        ("generation", ["UPDATE inventory SET used = 1 WHERE id = 65536"]),
        ("generation", ["DELETE FROM inventory WHERE id = 65536"]),
        ("generation", ["UPDATE consumer SET generation = 0 WHERE id = 1"]),
        ("tree", ["UPDATE provider SET root_id = 2 WHERE id = 4"]),
        ("tree", ["UPDATE provider SET parent_id = 99 WHERE id = 4"]),
        ("tree", ["UPDATE provider SET parent_id = 4 WHERE id = 1"]),
        ("ownerless inventory", ["DELETE FROM provider WHERE id = 3"]),
        ("ownerless host", ["DELETE FROM provider WHERE id = 3"]),
    ],
)
def test_damage_is_found(database, check, statements):
    damage(database, *statements)
    assert check in {finding.check for finding in audit(database)}


def test_shrunk_inventory_is_reported_as_possibly_allowed(database, run, tmp_path):
    (tmp_path / "roost.toml").write_text(f'[store]\nurl = "{database}"\n')
    with closing(open_store(database, settings=StoreSettings())) as store:
        (generation,) = (write[2] for write in state(store)["PutGeneration"] if write[1] == 1)
        assert commit(store, item(offer(1, expected=generation, cpu=3))) == [""]
    words = ("audit", "--config", tmp_path / "roost.toml")
    code, output, error = run(*words, "-o", "csv")
    assert (code, error) == (8, "roost: the audit found 1 broken rules\n")
    problem = "7 used of 3.0: allowed if the inventory shrank afterwards"
    assert output.splitlines()[1:] == [f"capacity,inventory of class 1 on provider 1,{problem}"]
    assert run(*words)[1].splitlines()[-1] == "1 findings"
    assert run("db", "check", "--database", database)[0] == 8
    assert [each["check"] for each in json.loads(run(*words, "--json")[1])] == ["capacity"]


def test_damage_beyond_table_constraints_is_found(tmp_path):
    path = str(tmp_path / "roost.db")
    with closing(open_store(path, settings=StoreSettings())) as store:
        assert commit(store, item(VCPU, provider(1), offer(1, cpu=8)), item(claim(1, (inventory(1), 2)))) == ["", ""]
    damage(
        path,
        "ALTER TABLE consumer RENAME TO strict",
        "CREATE TABLE consumer AS SELECT * FROM strict UNION ALL SELECT 2, uuid, '', '', 0, 1 FROM strict",
        "INSERT INTO allocation SELECT 2, inventory_id, 3 FROM allocation",
        f"UPDATE inventory SET used = 5 WHERE id = {_CPU_1}",
    )
    assert audit(path) == [Finding("doubled consumer", "consumers 1 and 2", "2 consumers have the same uuid")]


def put_work(store, *rows):
    """Commit statuses of instances, and migrations."""
    assert commit(store, item(work=map(Put, rows))) == [""]


@pytest.mark.parametrize(
    ("row", "is_orphan"),
    [
        (None, False),  # It was only decided; another system runs it.
        (status(1, status="ACTIVE", host="h1", node="p1"), False),
        (status(1, status="ERROR", host="h1", node="p1"), False),
        (status(1, status="BUILD"), False),
        (status(1, status="ERROR"), True),
        (status(1, status="DELETED"), True),
        (status(1, status="DELETED", host="h1", node="p1"), True),
        (status(1, status="DELETED", operation_id=1), True),
        (status(1, status="SHELVED_OFFLOADED"), True),
        (status(1, status="SHELVED_OFFLOADED", operation_id=1), False),
    ],
)
def test_instance_without_a_host_that_has_allocations_is_an_orphan(database, row, is_orphan):
    with closing(open_store(database, settings=StoreSettings())) as store:
        rows = [] if row is None else [msgspec.structs.replace(row, uuid=uuid_of("consumer", 1))]
        put_work(store, status(9), *rows)
    found = [finding for finding in audit(database) if finding.check == "orphan"]
    assert len(found) == is_orphan
    assert len(orphans(database)) == is_orphan
    if is_orphan:
        (orphan,) = orphans(database)
        assert (orphan.consumer, orphan.resource_class, orphan.amount) == (uuid_text(uuid_of("consumer", 1)), "VCPU", 2)
        assert f"consumer {orphan.consumer} holds 2 VCPU on provider {orphan.provider}" in (
            f"{found[0].subject} {found[0].problem}"
        )


@pytest.mark.parametrize("is_member", [False, True])  # It keeps the slot of its instance in a server group.
@pytest.mark.parametrize(
    ("words", "is_orphan"),
    [("moving", False), ("finished", False), ("reverting", False), ("confirmed", True), ("failed", True)],
)
def test_consumer_without_instance_or_open_migration_is_an_orphan(database, words, is_orphan, is_member):
    with closing(open_store(database, settings=StoreSettings())) as store:
        extra_claim = claim(7, (inventory(3), 1), instance=is_member)
        assert commit(store, item(extra_claim)) == [""]
        assert audit(database) == []  # Without status rows the instances are unknown.
        put_work(store, status(9), migration(1, uuid=extra_claim.consumers[0].uuid, status=words))
    assert [finding.check for finding in audit(database)] == ["orphan"] * is_orphan
