"""Drains: instances leave a host, a limited number at a time. The operation reports those that stay."""

from dataclasses import replace

import msgspec
import pytest

from roost.conductor.intake import accept_drain
from roost.conductor.intake.accept_drain import drain_method
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import body_of
from roost.errors import Conflict, NotFound
from roost.fleet.stored_documents import document_of
from roost.model.fleet import Departure
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.change_memory import Drain
from roost.model.work.orders import Answer
from roost.model.work.work_rows import NEVER_S, MigrationRow
from roost.model.writes import Item
from roost.placement.write_plan import Plan
from roost.placement.writes.labels import traits_of
from tests.support.conductors.conductors import Server, failure, server
from tests.support.conductors.move_servers import advance_clock, movers, nodes_by_consumer, run_agents_until_idle
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, host, merge_fleets

BROKEN = failure("it hangs")
ACTIONS = ("live_migrate", "send_disk")
NAMES = ("h0", "h1", "h2")
FLEET = merge_fleets(
    host("h0", VCPU=6, MEMORY_MB=100),
    host("h1", VCPU=4, MEMORY_MB=50),
    host("h2", VCPU=4, MEMORY_MB=40),
    group("apart", "anti-affinity"),
)


@pytest.fixture
def app():
    with server(None, FLEET) as app:
        app.hands = movers(app, NAMES)
        yield app


def build_on_h0(app, *names, **request):
    for name in names:
        app.build(name, key=name, force_hosts=("h0",), **request)
    run_agents_until_idle(app, app.hands)
    assert {app.status(name).host for name in names} == {"h0"}


def plan_drain(current, app, host="H0", *, at_once=2, is_disabling=True, key="drain"):
    """Return the plan that begins a drain."""
    return accept_drain.drain(
        current,
        app.reader,
        host,
        at_once=at_once,
        is_disabling=is_disabling,
        operation_uuid=uuid_bytes(uuid_named(key)),
        now_s=app.clock.now_s(),
    )


def drain(app, *host, **options):
    """Begin a drain."""
    return app.run(lambda current: plan_drain(current, app, *host, **options))


def test_host_has_one_drain_at_a_time(app):
    build_on_h0(app, "one")
    first = drain(app)
    with pytest.raises(Conflict, match=f"the host h0 is drained already, by the operation {uuid_text(first.uuid)}"):
        drain(app, key="other")
    assert drain(app).uuid == first.uuid
    assert drain(app, "h1", is_disabling=False, key="beside").uuid != first.uuid
    assert finish_drain(app, first).outcome == "done"
    drain(app, key="other")


def test_second_of_two_concurrent_drains_is_refused(app, monkeypatch):
    build_on_h0(app, "one")
    (other,) = app.run(lambda current: (plan_drain(current, app, is_disabling=False, key="theirs"),))
    commit = app.store.commit

    def commit_other_first(items):
        monkeypatch.setattr(app.store, "commit", commit)
        assert commit([Item(writes=(), work=other.work)]).refusals == [None]
        return commit(items)

    monkeypatch.setattr(app.store, "commit", commit_other_first)
    with pytest.raises(Conflict, match=f"the host h0 is drained already, by .* {uuid_text(other.answer.uuid)}"):
        drain(app, is_disabling=False)
    assert [row.uuid for row in app.open_operations()] == [other.answer.uuid]


def finish_drain(app, operation, script=None, *, turns=40):
    """Let conductor and agents work until the drain ends; return its operation."""
    for _ in range(turns):
        run_agents_until_idle(app, app.hands, script)
        row = app.reader.operation(operation.id)
        if row.outcome:
            return row
        advance_clock(app, app.hands, 1.0)
    raise AssertionError("it never ends")


def hosts_of(app, *names):
    return [app.status(name).host for name in names]


def rehearsal(app, *, at_once=2):
    """Return the host that a rehearsal finds for each instance of h0 that can move."""

    def task(current):
        statuses = [each for each in accept_drain.instances_of(app.reader, "h0") if drain_method(each).how]
        migrations = [uuid_named(f"dry {uuid_text(status.uuid)}") for status in statuses]
        acts = accept_drain.rehearse_drain(current.store.document, statuses, migrations=migrations, at_once=at_once)
        results = app.roost.outcomes(acts, dry_run=True)
        decisions = [result for act, result in zip(acts, results, strict=True) if not isinstance(act, Departure)]
        return {
            status.name: result.picks[0].host if result.is_granted else ""
            for status, result in zip(statuses, decisions, strict=True)
        }

    return app.run(task)


def test_drain_moves_two_at_a_time_and_keeps_their_power_states(app):
    build_on_h0(app, "one", "two", "three", "four")
    app.power("two", "stop")
    run_agents_until_idle(app, app.hands)
    operation = drain(app)
    app.turn()
    open_kinds = [part.kind for part in app.reader.parts_of(operation.id) if not part.outcome]
    assert open_kinds == ["live_migrate", "migrate"]
    assert body_of(app.reader.operation(operation.id), Drain).begun == 2
    row = finish_drain(app, operation)
    assert (row.outcome, body_of(row, Drain).problem) == ("done", "")
    parts = app.reader.parts_of(operation.id)
    assert [part.kind for part in parts] == ["live_migrate", "migrate", "live_migrate", "live_migrate"]
    assert {part.outcome for part in parts} == {"done"}
    assert [app.status(name).status for name in ("one", "two", "three", "four")] == [
        "ACTIVE",
        "SHUTOFF",
        "ACTIVE",
        "ACTIVE",
    ]
    assert "h0" not in hosts_of(app, "one", "two", "three", "four")
    assert app.hands["h0"].guests == {}
    assert (app.used()["VCPU"], app.open_operations(), len(nodes_by_consumer(app))) == (4, [], 4)


def test_drain_never_exceeds_its_limit_of_open_moves(app):
    build_on_h0(app, *(f"i{number}" for number in range(5)))
    operation = drain(app, at_once=1)
    most = 0
    for _ in range(60):
        app.turn()
        most = max(most, sum(not part.outcome for part in app.reader.parts_of(operation.id)))
        for each in app.hands.values():
            each.work()
        advance_clock(app, app.hands, 1.0)
        if app.reader.operation(operation.id).outcome:
            break
    assert most == 1
    assert body_of(app.reader.operation(operation.id), Drain).problem == ""
    assert app.hands["h0"].guests == {}


@pytest.mark.parametrize("at_once", [1, 2])
def test_drain_checks_its_last_moves_periodically(app, at_once):
    build_on_h0(app, "one")
    operation = drain(app, at_once=at_once)
    app.turn()
    row = app.reader.operation(operation.id)
    assert (body_of(row, Drain).going, row.due_at_s) == (
        (uuid_named("one"),),
        app.clock.now_s() + app.terms.parts_check_s,
    )


def test_drain_disables_the_host_for_new_instances(app):
    build_on_h0(app, "one")
    facts = lambda: app.run(lambda current: current.state.hosts.facts[0])  # noqa: E731  # used twice
    operation = drain(app)
    assert (facts().is_disabled, facts().disabled_reason) == (True, "it is drained")
    assert app.run(lambda current: traits_of(current.state, 0)) == ["COMPUTE_STATUS_DISABLED"]
    finish_drain(app, operation)
    app.build("two", key="two")
    run_agents_until_idle(app, app.hands)
    assert app.status("two").host in {"h1", "h2"}


def test_drain_can_leave_the_host_enabled(app):
    build_on_h0(app, "one")
    finish_drain(app, drain(app, is_disabling=False))
    app.build("two", key="two")
    run_agents_until_idle(app, app.hands)
    assert hosts_of(app, "one", "two") == ["h1", "h0"]


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_drain_uses_the_hosts_of_its_rehearsal(app, at_once):
    names = [f"i{number}" for number in range(6)]
    build_on_h0(app, *names[:2], in_group=None)
    build_on_h0(app, *names[2:4], vcpus=2)
    expected = rehearsal(app, at_once=at_once)
    before = app.used()
    finish_drain(app, drain(app, at_once=at_once))
    assert dict(zip(names[:4], hosts_of(app, *names[:4]), strict=True)) == expected
    assert app.used() == before


def test_instance_without_a_valid_host_stays_and_is_reported(app):
    build_on_h0(app, "one", "two")
    app.build("wide", key="wide", vcpus=4, force_hosts=("h0",))
    app.build("fills", key="fills", vcpus=3, force_hosts=("h1",))
    run_agents_until_idle(app, app.hands)
    assert rehearsal(app)["wide"] in {"h2", ""}
    app.build("fills too", key="fills too", vcpus=2, force_hosts=("h2",))
    run_agents_until_idle(app, app.hands)
    assert rehearsal(app)["wide"] == ""
    row = finish_drain(app, drain(app))
    assert body_of(row, Drain).problem == "1 of 3 instances stayed on h0"
    assert (row.outcome, hosts_of(app, "wide")) == ("failed", ["h0"])
    assert "h0" not in hosts_of(app, "one", "two")
    kinds = dict(app.story("wide"))
    assert kinds["drain.stayed"]["problem"].startswith("No valid host was found. ")
    assert (app.status("wide").status, app.open_operations()) == ("ACTIVE", [])


def test_flavor_of_several_moves_is_stored_once(app, monkeypatch):
    build_on_h0(app, "one", "two")
    flavor = b'{"vcpus":1,"name":"other","memory_mb":1,"root_gb": 0}'  # Roost itself writes no space there.
    document = document_of("flavor", flavor, flavor)
    rows = [replace_row(next_version(app.status(name), flavor_id=document.id)) for name in ("one", "two")]
    app.run(lambda _current: Plan(answer=None, writes=(document,), work=tuple(rows)))
    operation, commit, committed = drain(app), app.store.commit, []
    monkeypatch.setattr(app.store, "commit", lambda items: committed.extend(items) or commit(items))
    finish_drain(app, operation)
    first = next(item for item in committed if any(isinstance(put.row, MigrationRow) for put in item.work))
    flavor_ids = [put.row.new_flavor_id for put in first.work if isinstance(put.row, MigrationRow)]
    assert flavor_ids == [write.id for write in first.writes if write.kind == "flavor"] * 2 != [document.id] * 2


def test_failed_live_migration_is_followed_by_a_cold_migration(app):
    build_on_h0(app, "one")
    broken = failure("guests on h0 cannot move while they run")
    operation = drain(app)
    row = finish_drain(app, operation, {("h0", "live_migrate"): [broken] * 9})
    assert (row.outcome, app.status("one").status, app.status("one").host) == ("done", "ACTIVE", "h1")
    assert [(part.kind, part.outcome) for part in app.reader.parts_of(operation.id)] == [
        ("live_migrate", "failed"),
        ("migrate", "done"),
    ]


def test_drain_does_not_rely_on_the_numbers_of_its_parts(app):
    build_on_h0(app, "one")
    operation = drain(app)
    other = Server(app.store.peer(), clock=app.clock)
    try:
        other.conductor("other").turn()
        script = {("h0", kind): [BROKEN] * 9 for kind in ACTIONS}
        row = finish_drain(app, operation, script)
    finally:
        other.stop()
    assert [part.kind for part in app.reader.parts_of(operation.id)] == ["migrate", "live_migrate"]
    assert body_of(row, Drain).problem == "1 of 1 instances stayed on h0"


def test_drain_emits_an_event_with_its_result(app):
    build_on_h0(app, "one")
    complete = finish_drain(app, drain(app))
    incomplete = finish_drain(app, drain(app, "h1", key="broken"), {("h1", kind): [BROKEN] * 9 for kind in ACTIONS})
    ends = [app.reader.events_of(each.id, newest=1)[0] for each in (complete, incomplete)]
    assert [(end.kind, msgspec.json.decode(end.body)) for end in ends] == [
        ("drain.done", {"host": "h0"}),
        ("drain.failed", {"host": "h1", "problem": "1 of 1 instances stayed on h1"}),
    ]


def test_instances_that_cannot_move_are_reported(app):
    build_on_h0(app, "one", "two")
    script = {("h0", kind): [BROKEN] * 9 for kind in ACTIONS}
    row = finish_drain(app, drain(app), script)
    assert body_of(row, Drain).problem == "2 of 2 instances stayed on h0"
    assert [app.status(name).status for name in ("one", "two")] == ["ACTIVE", "ACTIVE"]
    assert dict(app.story("one"))["drain.stayed"]["problem"] == app.status("one").fault


def test_drain_offloads_a_shelved_instance(app):
    build_on_h0(app, "one")
    app.terms = replace(app.terms, shelved_offload_time_s=-1.0)
    app.change("one", "shelve")
    run_agents_until_idle(app, app.hands, {("h0", "save"): [Answer(outcome="ok", saved="saved")]})
    assert app.status("one").status == "SHELVED"
    row = finish_drain(app, drain(app))
    assert (row.outcome, app.status("one").status, app.used()["VCPU"]) == ("done", "SHELVED_OFFLOADED", 0)


def test_instances_in_error_or_with_an_open_operation_stay(app):
    build_on_h0(app, "one", "two")
    app.change("one", "rebuild")
    run_agents_until_idle(app, app.hands, {("h0", "rebuild"): [failure("no image")]})
    app.power("two", "stop")
    row = finish_drain(app, drain(app))
    assert body_of(row, Drain).problem == "2 of 2 instances stayed on h0"
    assert dict(app.story("one"))["drain.stayed"] == {"problem": "an instance in status ERROR is not moved"}
    assert "its task is powering-off" in dict(app.story("two"))["drain.stayed"]["problem"]


def test_instance_in_a_power_sync_moves_after_the_sync(app):
    build_on_h0(app, "one", "two")
    h0 = app.hands["h0"]
    h0.guests[uuid_named("one")] = "stopped"
    h0.register()
    assert app.status("one").task == "syncing"
    operation = drain(app)
    app.turn()
    assert [part.kind for part in app.reader.parts_of(operation.id)] == ["live_migrate"]
    row = finish_drain(app, operation)
    assert (row.outcome, body_of(row, Drain).problem) == ("done", "")
    assert [part.kind for part in app.reader.parts_of(operation.id)] == ["live_migrate", "migrate"]
    assert [app.status(name).status for name in ("one", "two")] == ["SHUTOFF", "ACTIVE"]
    assert "h0" not in hosts_of(app, "one", "two")


def test_instances_deleted_during_the_drain_are_not_reported(app):
    build_on_h0(app, "one", "two", "three")
    operation = drain(app, at_once=1)
    app.delete("three")
    app.delete("one")
    row = finish_drain(app, operation)
    assert (row.outcome, body_of(row, Drain).problem) == ("done", "")
    assert [app.status(name).status for name in ("one", "two", "three")] == ["DELETED", "ACTIVE", "DELETED"]


def test_drain_of_an_empty_host_ends_at_once(app):
    row = finish_drain(app, drain(app))
    assert (row.outcome, app.reader.parts_of(row.id)) == ("done", [])


def test_cancelled_drain_finishes_its_open_moves(app):
    build_on_h0(app, "one", "two", "three")
    operation = drain(app, at_once=1)
    app.turn()
    cancel = lambda: app.run(  # noqa: E731  # used again below
        lambda _current: accept_drain.cancel(app.reader, uuid_named("drain"), now_s=app.clock.now_s())
    )
    cancel()
    cancel()
    row = finish_drain(app, operation)
    assert body_of(row, Drain).problem == "it was cancelled: 2 of 3 instances stayed on h0"
    assert sorted(hosts_of(app, "one", "two", "three")) == ["h0", "h0", "h1"]
    with pytest.raises(Conflict, match="is over"):
        cancel()
    with pytest.raises(NotFound):
        app.run(lambda _current: accept_drain.cancel(app.reader, uuid_named("nobody"), now_s=0.0))
    build = app.reader.operations(limit=1)[0]
    with pytest.raises(Conflict, match="is of kind build: this request cancels only drains and applied plans"):
        app.run(lambda _current: accept_drain.cancel(app.reader, uuid_text(build.uuid), now_s=0.0))


def test_gone_host_cannot_be_drained(app):
    app.hands["h0"].leave()
    with pytest.raises(Conflict, match="can only be evacuated"):
        drain(app)
    assert app.open_operations() == []


def test_drain_fails_if_its_host_leaves(app):
    build_on_h0(app, "one", "two", "three")
    operation = drain(app, at_once=1)
    app.turn()
    app.hands["h0"].leave()
    row = finish_drain(app, operation, turns=300)
    assert (row.outcome, body_of(row, Drain).problem) == ("failed", "3 of 3 instances stayed on h0")


def test_same_key_returns_the_same_drain(app):
    build_on_h0(app, "one")
    assert drain(app).id == drain(app).id


def test_members_of_a_server_group_stay_apart(app):
    app.build("one", key="one", in_group="apart", force_hosts=("h0",))
    app.build("two", key="two", in_group="apart", force_hosts=("h1",))
    run_agents_until_idle(app, app.hands)
    finish_drain(app, drain(app))
    assert hosts_of(app, "one", "two") == ["h2", "h1"]


def pause(app, *, is_paused=True, name=None):
    return app.run(
        lambda current: accept_drain.pause(
            current, app.reader, name or uuid_named("drain"), is_paused=is_paused, now_s=app.clock.now_s()
        )
    )


def test_paused_drain_begins_no_moves_until_it_is_resumed(app):
    build_on_h0(app, "one", "two", "three")
    operation = drain(app, at_once=1)
    app.turn()
    pause(app)
    pause(app)
    for _ in range(5):
        run_agents_until_idle(app, app.hands)
        advance_clock(app, app.hands, 1.0)
    row = app.reader.operation(operation.id)
    assert (row.outcome, row.due_at_s) == ("", NEVER_S)
    assert sorted(hosts_of(app, "one", "two", "three")) == ["h0", "h0", "h1"]
    pause(app, is_paused=False)
    row = finish_drain(app, operation)
    assert (row.outcome, body_of(row, Drain).is_paused) == ("done", False)
    kinds = [event.kind for event in reversed(app.reader.events_of(operation.id, newest=99))]
    assert [kind for kind in kinds if kind != "drain.moving"] == [
        "drain.asked",
        "drain.paused",
        "drain.resumed",
        "drain.done",
    ]
    with pytest.raises(Conflict, match="is over"):
        pause(app)
    build = app.reader.operations(limit=1)[0]
    with pytest.raises(Conflict, match="this request pauses only drains"):
        pause(app, name=uuid_text(build.uuid))


def test_paused_drain_makes_no_second_attempt_to_move_an_instance(app):
    build_on_h0(app, "one")
    operation = drain(app)
    app.turn()
    pause(app)
    for _ in range(5):
        run_agents_until_idle(app, app.hands, {("h0", "live_migrate"): [BROKEN]})
        advance_clock(app, app.hands, 1.0)
    assert [part.kind for part in app.reader.parts_of(operation.id)] == ["live_migrate"]
    assert body_of(app.reader.operation(operation.id), Drain).going == (uuid_text(app.status("one").uuid),)
    pause(app, is_paused=False)
    assert finish_drain(app, operation).outcome == "done"
    assert [part.kind for part in app.reader.parts_of(operation.id)] == ["live_migrate", "migrate"]


def test_paused_drain_ends_if_it_is_cancelled(app):
    build_on_h0(app, "one", "two")
    operation = drain(app, at_once=1)
    app.turn()
    pause(app)
    run_agents_until_idle(app, app.hands)
    app.run(lambda _current: accept_drain.cancel(app.reader, uuid_named("drain"), now_s=app.clock.now_s()))
    with pytest.raises(Conflict, match="was cancelled"):
        pause(app, is_paused=False)
    assert body_of(finish_drain(app, operation), Drain).problem == "it was cancelled: 1 of 2 instances stayed on h0"
