"""Work rows: committed atomically with claims, replaced only at the expected version, read beside the store."""

import threading
from contextlib import closing
from pathlib import Path

import pytest

from roost.model.names import uuid_text
from roost.model.work.operation import IO_TASKS
from roost.model.work.work_rows import NO_RUN, Put
from roost.model.writes import PutTask, Refusal
from roost.store import backup as backups
from roost.store import memory_store
from roost.store.postgresql import store as postgresql_store
from roost.store.sqlite import store as sqlite_store
from tests.contract.stores import (
    SharedWorld,
    SqliteWorld,
    claim,
    commit,
    evidence,
    host,
    inventory,
    item,
    offer,
    position_of,
    provider,
    release,
    state,
    uuid_of,
)
from tests.support.conductors.work_rows import agent, event, lease, migration, operation, order, replacement, status
from tests.support.fleets.worlds import FixedClock

NO_UUID = uuid_of("nobody")


@pytest.fixture
def reader(store):
    """Yield a reader of the work in the store."""
    with closing(store.work_reader(FixedClock(5.0))) as found:
        yield found


def all_of(reader):
    """Return all work rows."""
    return {
        "agents": reader.agents(),
        "statuses": reader.statuses(limit=99),
        "operations": reader.operations(limit=99),
        "orders": [order for each in range(9) for order in reader.orders_of(each)],
        "migrations": reader.migrations(limit=99),
        "lease": reader.lease("watch"),
        "events": reader.events_since(0.0, limit=99),
    }


FULL = {
    "agents": [agent("h1"), agent("h2", state="gone", cell="c")],
    "statuses": [
        status(1),
        status(2, decision_uuid=uuid_of("d"), migration_uuid=uuid_of("m"), host="h1", fault="fell"),
    ],
    "operations": [
        operation(1, body=b"\x00\xff", user_id="alice", project_id="ops", request_id="req-1"),
        operation(2, is_undoing=True, is_cancelled=True, instance_uuid=NO_UUID),
    ],
    "orders": [order(1), order(2, run=NO_UUID, instance_uuid=NO_UUID, state="taken", answer=b"ok")],
    "migrations": [migration(1)],
    "lease": lease(),
    "events": [event(1), event(2, instance_uuid=NO_UUID, operation_id=1, body=b"{}")],
}


def fill(store):
    """Commit work rows of every kind."""
    rows = [row for rows in FULL.values() for row in (rows if isinstance(rows, list) else [rows])]
    assert commit(store, item(work=map(Put, rows))) == [""]


def test_work_rows_are_read_back_also_after_a_restart(world):
    store = world.open()
    fill(store)
    with closing(store.work_reader(FixedClock(5.0))) as reader:
        assert all_of(reader) == FULL
    with closing(world.open().work_reader(FixedClock(5.0))) as reader:
        assert all_of(reader) == FULL


def test_duplicate_key_or_alternate_key_of_a_new_row_is_refused(store, reader):
    assert commit(store, item(work=[Put(operation(1)), Put(status(1)), Put(order(1))])) == [""]
    others = [
        operation(1, uuid=NO_UUID),
        operation(2, uuid=uuid_of("operation", 1)),
        status(1, id=9),
        status(1, uuid=NO_UUID),
        order(1, number=9),
        order(9, number=1),
    ]
    refusals = store.commit([item(work=[Put(other)]) for other in others]).refusals
    assert [refusal.kind for refusal in refusals] == ["duplicate"] * len(others)
    assert all(refusal.is_final for refusal in refusals)
    assert (refusals[1].table, refusals[1].key, refusals[1].work) == ("operation", 2, "operation 2")
    assert refusals[2].work == f"instance_status {uuid_text(uuid_of('instance', 1))}"
    assert reader.operations(limit=9) == [operation(1)]


def test_row_is_replaced_only_at_the_version_that_was_read(store, reader):
    one = operation(1)
    assert commit(store, item(work=[Put(one)])) == [""]
    mine, theirs = replacement(one, step="send", owner="me"), replacement(one, step="undo", owner="them")
    assert store.commit([item(work=[mine]), item(work=[theirs])]).refusals == [
        None,
        Refusal("generation", "operation", 1, "operation 1"),
    ]
    assert commit(store, item(work=[theirs])) == ["generation"]
    assert reader.operation(1) == mine.row
    assert commit(store, item(work=[replacement(operation(7), step="send")])) == ["generation"]
    assert commit(store, item(work=[replacement(lease("nobody's"))])) == ["generation"]


def test_dependent_row_is_written_only_while_its_basis_is_unchanged(store, reader):
    one, other = operation(1), operation(2)
    assert commit(store, item(work=[Put(one), Put(other)])) == [""]
    seen, mine = Put(one, one.version), replacement(other, step="send")
    assert commit(store, item(work=[seen]), item(work=[seen, mine])) == ["", ""]
    assert (reader.operation(1), reader.operation(2)) == (one, mine.row)
    theirs, later = replacement(one, step="undo"), replacement(mine.row, step="done")
    assert commit(store, item(work=[theirs]), item(work=[seen, later])) == ["", "generation"]
    assert commit(store, item(work=[seen, later])) == ["generation"]
    assert reader.operation(2) == mine.row
    assert commit(store, item(work=[Put(operation(7), 1)])) == ["generation"]


def test_items_of_one_commit_see_earlier_work_in_order(store, reader):
    first, second = operation(1), replacement(operation(1), step="send")
    third = replacement(second.row, step="done", outcome="done")
    verdicts = commit(store, item(work=[third]), item(work=[Put(first), second]), item(work=[third]))
    assert verdicts == ["generation", "", ""]
    assert reader.operation_by_uuid(uuid_of("operation", 1)) == third.row


def test_item_with_work_is_committed_or_refused_as_a_whole(small_store):
    assert commit(small_store, item(work=[Put(operation(1))])) == [""]
    before = state(small_store)
    step = replacement(operation(1), step="send")
    one = claim(1, (inventory(1), 4))
    work = [step, Put(order(1)), Put(event(1))]
    assert commit(small_store, item(claim(9, (inventory(1), 99)), rows=[evidence(1)], work=work)) == ["units"]
    late = [replacement(operation(1, version=7), step="send"), Put(order(1))]
    assert commit(small_store, item(one, rows=[evidence(1)], work=late)) == ["generation"]
    with closing(small_store.work_reader(FixedClock(5.0))) as reader:
        assert (reader.operation(1), reader.order(1), small_store.evidence()) == (operation(1), None, [])
        assert state(small_store) == before
        assert commit(small_store, item(one, rows=[evidence(1)], work=work)) == [""]
        assert (reader.operation(1), reader.order(1)) == (step.row, order(1))
    assert state(small_store)["takes"] == [(1, inventory(1), 4)]
    assert [row.id for row in small_store.evidence()] == [1]
    done = [replacement(step.row, outcome="done")]
    assert commit(small_store, item(release(one), work=done), item(release(one), work=done)) == ["", "missing"]


def test_only_io_tasks_of_work_reach_the_columns_and_only_by_a_load(world):
    store = world.open()
    before = state(store)
    fill(store)
    found = state(store)
    with closing(store.work_reader(FixedClock(5.0))) as reader:
        busy = sorted(each.uuid for each in reader.statuses(limit=99) if each.task in IO_TASKS)
    assert [PutTask(uuid, is_io=True) for uuid in busy] == [
        write for write in store.load().writes if isinstance(write, PutTask)
    ]
    assert len(found.pop("PutTask")) == len(busy) > 0
    assert found == before
    assert [write for change in store.changes() for write in change.writes] == []


def test_numbers_of_work_rows_are_never_repeated(world):
    store = world.open()
    numbers = {kind: store.reserve(kind, 3) for kind in ("status", "operation", "order", "migration", "event")}
    rows = [status, operation, order, migration, event]
    assert commit(store, item(work=[Put(make(first)) for make, first in zip(rows, numbers.values(), strict=True)])) == [
        ""
    ]
    store = world.open()
    for kind, first in numbers.items():
        assert store.reserve(kind, 1) >= first + 3


def test_heartbeat_is_stored_without_a_commit(store, reader):
    assert commit(store, item(work=[Put(agent("h1")), Put(agent("h2"))])) == [""]
    position = position_of(store)
    store.beat(["h1", "h9"], 950.0)
    assert [(row.host, row.heard_at_s, row.version) for row in reader.agents()] == [("h1", 950.0, 1), ("h2", 900.0, 1)]
    store.beat(["h1", "h2"], 940.0)
    store.beat([], 999.0)
    assert [row.heard_at_s for row in reader.agents()] == [950.0, 940.0]
    assert position_of(store) == position
    assert commit(store, item(work=[replacement(agent("h1", heard_at_s=950.0), state="gone")])) == [""]
    assert reader.agent("h1").state == "gone"
    assert reader.agent("h9") is None


def test_due_operations_are_open_due_unowned_and_of_the_given_cells(store, reader):
    rows = [
        operation(1, due_at_s=990.0),
        operation(2, due_at_s=980.0),
        operation(3, due_at_s=1001.0),
        operation(4, outcome="done"),
        operation(5, owner="x", owned_until_s=1001.0),
        operation(6, owner="x", owned_until_s=1000.0),
        operation(7, cell="a", due_at_s=970.0),
        operation(8, cell="b"),
    ]
    assert commit(store, item(work=map(Put, rows))) == [""]

    def due(*cells, most=9):
        return [row.id for row in reader.due_operations(cells, now_s=1000.0, limit=most)]

    assert due("") == [2, 1, 6]
    assert due("", "a") == [7, 2, 1, 6]
    assert due("", "a", most=2) == [7, 2]
    assert due("c") == due() == []
    assert [row.id for row in reader.due_operations(None, now_s=1000.0, limit=9)] == [7, 2, 1, 6, 8]
    assert [row.id for row in reader.operations(after_id=2, limit=3, is_open=True)] == [3, 5, 6]
    assert [row.id for row in reader.operations(after_id=2, limit=3)] == [3, 4, 5]


def test_open_operations_are_found_by_their_kind(store, reader):
    rows = [
        operation(1),
        operation(5, kind="drain", due_at_s=2000.0),
        operation(6, kind="drain", due_at_s=1000.0),
        operation(7, kind="drain", outcome="done"),
    ]
    assert commit(store, item(work=map(Put, rows))) == [""]
    assert [row.id for row in reader.open_operations_of("drain")] == [6, 5]
    assert reader.open_operations_of("sync") == []


def test_work_is_found_by_its_subject(store, reader):
    one, two = uuid_of("instance", 1), uuid_of("instance", 2)
    rows = [
        status(1, host="h1"),
        status(2, project_id="p", host="h1", status="ACTIVE"),
        status(3),
        operation(1),
        operation(2, instance_uuid=one, parent_id=1),
        operation(3, instance_uuid=one, parent_id=1),
        operation(4, instance_uuid=two),
        order(1, number=2, instance_uuid=one),
        order(2, number=1, state="taken"),
        order(3, state="answered"),
        order(4, host="h2", operation_id=2, action="destroy"),
        migration(1),
        migration(2, status="finished"),
        migration(3, instance_uuid=two),
        event(1, instance_uuid=one, operation_id=2),
        event(3, instance_uuid=one),
        event(2, instance_uuid=two, operation_id=2, at_s=2000.0),
        lease("other"),
    ]
    assert commit(store, item(work=map(Put, rows))) == [""]

    def ids(found):
        return [row.id for row in found]

    assert reader.status(one) == rows[0]
    assert reader.status(NO_UUID) is None
    assert ids(reader.statuses_of([two, NO_UUID, one])) == [1, 2]
    assert ids(reader.statuses(after_id=1, limit=1)) == [2]
    assert ids(reader.statuses(limit=9, host="h1")) == [1, 2]
    assert ids(reader.statuses(limit=9, host="h1", project_id="p", status="ACTIVE")) == [2]
    assert ids(reader.operations_on(one, newest=9)) == [3, 2]
    assert ids(reader.operations_on(one, newest=1)) == [3]
    assert ids(reader.parts_of(1)) == [2, 3]
    assert ids(reader.open_orders(["h1", "h2", "h3"], limit=9)) == [1, 2, 4]
    assert ids(reader.open_orders(["h1"], limit=1)) == [1]
    assert ids(reader.open_orders([], limit=9)) == []
    assert ids(reader.open_orders(["h1", "h2", "h3"], limit=9, actions=["destroy", "save"])) == [4]
    assert ids(reader.orders_of(1)) == [2, 1, 3]
    assert sorted(ids(reader.orders_by_id([4, 99, 1, 2**63 - 1]))) == [1, 4]
    assert ids(reader.orders_by_id([])) == []
    assert ids(reader.migrations_of(one)) == [1, 2]
    assert ids(reader.operations_by_id([3, 9, 1])) == [1, 3]
    assert ids(reader.open_operations_on([two, one])) == [2, 3, 4]
    assert ids(reader.open_parts_of(1, limit=1)) == [2]
    assert ids(reader.orders_of_all([2, 1])) == [2, 1, 3, 4]
    assert ids(reader.migrations_of_all([two, one])) == [1, 2, 3]
    assert ids(reader.migrations(limit=9, status="finished", source_host="h1")) == [2]
    assert ids(reader.migrations(limit=9, status="finished", target_host="h1")) == []
    assert ids(reader.migrations(after_id=1, limit=9)) == [2, 3]
    assert reader.migration(uuid_of("migration", 3)) == rows[13]
    assert ids(reader.events_on(one, newest=9)) == [3, 1]
    assert ids(reader.events_of(2, newest=9)) == [2, 1]
    assert ids(reader.events_since(1003.0, limit=9)) == [3, 2]
    assert ids(reader.events_since(1003.0, limit=1)) == [3]
    assert ids(reader.events_before(1004.0, newest=9)) == [3, 1]
    assert ids(reader.events_before(1004.0, newest=1)) == [3]
    assert (reader.lease("other"), reader.lease("watch")) == (rows[-1], None)


def test_operations_and_migrations_are_ordered_by_time_not_number(store, reader):
    one = uuid_of("instance", 1)
    rows = [
        operation(2, instance_uuid=one),
        operation(1, instance_uuid=one, created_at_s=1001.0),
        operation(3, instance_uuid=one),
        migration(2),
        migration(1, created_at_s=1001.0),
        migration(3),
    ]
    assert commit(store, item(work=map(Put, rows))) == [""]
    assert [row.id for row in reader.operations_on(one, newest=2)] == [1, 3]
    assert [row.id for row in reader.migrations_of(one)] == [2, 3, 1]


def test_agents_are_reloaded_only_after_a_write(store, reader):
    first = agent("h1")
    assert commit(store, item(work=[Put(first)])) == [""]
    known = reader.agents_by_host()
    assert known == {"h1": first}
    store.beat(["h1"], first.heard_at_s + 9)
    assert reader.agents_by_host() is known
    assert commit(store, item(work=[replacement(first, state="gone"), Put(agent("h2"))])) == [""]
    assert {host: each.state for host, each in reader.agents_by_host().items()} == {"h1": "gone", "h2": "ready"}


def test_time_comes_from_the_clock_or_the_shared_database(world):
    store = world.open()
    with closing(store.work_reader(FixedClock(5.0))) as reader:
        assert (reader.now_s() == 5.0) is (not isinstance(world, SharedWorld))
        assert reader.now_s() == 5.0 or reader.now_s() > 1.7e9


def test_reader_in_another_thread_sees_each_commit_during_writes(small_store, reader):
    rows, seen = [Put(operation(1))], []
    for version in range(1, 60):
        rows.append(replacement(rows[-1].row, turn=version))

    def watch():
        while not seen or seen[-1] < len(rows):
            found = reader.operation(1)
            if found is not None:
                seen.append(found.version)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    for number, put in enumerate(rows, 1):
        assert commit(small_store, item(claim(number, (inventory(2, 2), 1)), work=[put])) == [""]
    watcher.join(timeout=60)
    assert seen == sorted(seen)
    assert seen[-1] == len(rows)


def test_backup_includes_work_and_numbers_continue_after_a_restore(durable, tmp_path):
    store = durable.open()
    fill(store)
    last = store.reserve("operation", 10) + 9
    url, path = _url_of(durable), tmp_path / "one.backup"
    backups.backup(url, path, progress=lambda *_: None)
    late = replacement(operation(1, body=b"\x00\xff"), step="lost")
    assert commit(store, item(work=[late, Put(operation(last))])) == [""]
    if isinstance(durable, SqliteWorld):
        store.close()
    backups.restore(url, path, may_replace=True, progress=lambda *_: None)
    store = durable.open()
    with closing(store.work_reader(FixedClock(5.0))) as reader:
        restored = all_of(reader)
    # Agents must register again, and open operations have other uuids: see docs/production.md.
    agents, operations = restored["agents"], restored["operations"]
    assert [each.run for each in agents] == [NO_RUN, NO_RUN]
    assert agents == [backups.forget_registration(each) for each in FULL["agents"]]
    assert all(each.uuid != before.uuid for each, before in zip(operations, FULL["operations"], strict=True))
    uuids = [each.uuid for each in operations]
    assert operations == [
        backups.renew_operation(each, uuid=uuid, delay_s=0.0)
        for each, uuid in zip(FULL["operations"], uuids, strict=True)
    ]
    assert restored == {**FULL, "agents": agents, "operations": operations}
    assert store.reserve("operation", 1) > last


def test_database_with_only_work_is_not_empty(durable, tmp_path):
    store = durable.open()
    path = tmp_path / "one.backup"
    backups.backup(_url_of(durable), path, progress=lambda *_: None)
    assert commit(store, item(work=[Put(agent("h1"))])) == [""]
    if isinstance(durable, SqliteWorld):
        store.close()
    with pytest.raises(Exception, match="is not empty"):
        backups.restore(_url_of(durable), path, may_replace=False, progress=lambda *_: None)


def _url_of(world):
    return str(Path(world.path)) if isinstance(world, SqliteWorld) else world.url


def test_old_finished_work_is_pruned_and_open_work_stays(store, reader):
    rows = [
        operation(1, outcome="done", changed_at_s=10.0),
        operation(2, changed_at_s=10.0),
        operation(3, outcome="failed", changed_at_s=900.0),
        order(1, operation_id=1, state="answered"),
        order(2, operation_id=2),
        migration(1, status="confirmed", changed_at_s=10.0),
        migration(2, status="finished", changed_at_s=10.0),
        status(1, status="DELETED", changed_at_s=10.0),
        status(2, status="ACTIVE", changed_at_s=10.0),
        event(1, at_s=10.0),
        event(2, at_s=900.0),
        agent("h1", state="gone", heard_at_s=10.0),
        lease(until_s=10.0),
    ]
    assert commit(store, item(work=map(Put, rows))) == [""]
    assert store.prune_work(older_than_s=9.0) == 0
    assert store.prune_work(older_than_s=100.0) == 5
    assert store.prune_work(older_than_s=100.0) == 0
    found = all_of(reader)
    assert [row.id for row in found["operations"]] == [2, 3]
    assert [row.id for row in found["orders"]] == [row.id for row in found["migrations"]] == [2]
    assert [row.id for row in found["statuses"]] == [row.id for row in found["events"]] == [2]
    assert (len(found["agents"]), found["lease"]) == (1, rows[-1])
    assert commit(store, item(work=[Put(rows[0])]), item(work=[replacement(rows[5])])) == ["", "generation"]


def test_old_operation_stays_while_a_host_has_open_orders_for_it(store, reader, monkeypatch):
    for module in (memory_store, sqlite_store, postgresql_store):
        monkeypatch.setattr(module, "_PRUNED_PER_CALL", 2)
    held = [operation(number, outcome="done", changed_at_s=float(number)) for number in range(1, 6)]
    rows = [
        *held,
        operation(9, outcome="done", changed_at_s=9.0),
        order(90, operation_id=9, state="withdrawn"),
        *(order(each.id, operation_id=each.id, action="destroy", host="away") for each in held),
    ]
    assert commit(store, item(work=map(Put, rows))) == [""]
    assert store.prune_work(older_than_s=100.0) == 2
    assert [row.id for row in reader.operations(limit=9)] == [1, 2, 3, 4, 5]
    assert [row.id for row in reader.open_orders(["away"], limit=9)] == [1, 2, 3, 4, 5]
    assert commit(store, item(work=[replacement(rows[7], state="answered")])) == [""]
    assert store.prune_work(older_than_s=100.0) == 2
    assert [row.id for row in reader.operations(limit=9)] == [2, 3, 4, 5]


def test_commit_with_documents_and_hosts_may_carry_work(store, reader):
    writes = (provider(1), offer(1, cpu=8), host(1), claim(1, (inventory(1), 2)))
    assert commit(store, item(*writes, work=[Put(status(1))]), item(work=[Put(event(1))])) == ["", ""]
    assert reader.status(uuid_of("instance", 1)) == status(1)


def test_events_are_immutable_and_versions_never_fall():
    for row, expected in ((event(1), 1), (operation(1), 2), (operation(1, version=2), 3)):
        with pytest.raises(AssertionError):
            Put(row, expected)
