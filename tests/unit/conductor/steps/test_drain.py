"""A host is left by its instances: so many at once, each as it can, and what stays is told."""

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
from roost.model.work.work_rows import MigrationRow
from roost.model.writes import Item
from roost.placement.write_plan import Plan
from tests.support.conductors.conductors import Server, failed, server
from tests.support.conductors.move_servers import at_rest, holders, movers, pass_time
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, host, joined

BROKEN = failed("it hangs")
WAYS = ("live_migrate", "send_disk")
NAMES = ("h0", "h1", "h2")
FLEET = joined(
    host("h0", VCPU=6, MEMORY_MB=100),
    host("h1", VCPU=4, MEMORY_MB=50),
    host("h2", VCPU=4, MEMORY_MB=40),
    group("apart", "anti-affinity"),
)


@pytest.fixture
def here():
    with server(None, FLEET) as made:
        made.hands = movers(made, NAMES)
        yield made


def running(here, *names, **request):
    for name in names:
        here.build(name, key=name, force_hosts=("h0",), **request)
    at_rest(here, here.hands)
    assert {here.status(name).host for name in names} == {"h0"}


def accepted(current, here, host="H0", *, at_once=2, is_disabling=True, key="drain"):
    """Give what is to be committed for it."""
    return accept_drain.drain(
        current,
        here.reader,
        host,
        at_once=at_once,
        is_disabling=is_disabling,
        operation_uuid=uuid_bytes(uuid_named(key)),
        now_s=here.clock.now_s(),
    )


def drain(here, *host, **told):
    """Ask for it."""
    return here.run(lambda current: accepted(current, here, *host, **told))


def test_a_host_is_left_by_one_drain_at_once(here):
    running(here, "one")
    first = drain(here)
    with pytest.raises(Conflict, match=f"the host h0 is drained already, by the operation {uuid_text(first.uuid)}"):
        drain(here, key="other")
    assert drain(here).uuid == first.uuid
    assert drain(here, "h1", is_disabling=False, key="beside").uuid != first.uuid
    assert over(here, first).outcome == "done"
    drain(here, key="other")


def test_of_two_drains_that_are_asked_for_at_the_same_moment_one_finds_the_other(here, monkeypatch):
    running(here, "one")
    (theirs,) = here.run(lambda current: (accepted(current, here, is_disabling=False, key="theirs"),))
    commit = here.store.commit

    def meanwhile(items):
        monkeypatch.setattr(here.store, "commit", commit)
        assert commit([Item(writes=(), work=theirs.work)]).refusals == [None]
        return commit(items)

    monkeypatch.setattr(here.store, "commit", meanwhile)
    with pytest.raises(Conflict, match=f"the host h0 is drained already, by .* {uuid_text(theirs.answer.uuid)}"):
        drain(here, is_disabling=False)
    assert [row.uuid for row in here.open_operations()] == [theirs.answer.uuid]


def over(here, operation, script=None, *, turns=40):
    """Let everybody work until the host is left; give the operation."""
    for _ in range(turns):
        at_rest(here, here.hands, script)
        found = here.reader.operation(operation.id)
        if found.outcome:
            return found
        pass_time(here, here.hands, 1.0)
    raise AssertionError("it never ends")


def places(here, *names):
    return [here.status(name).host for name in names]


def rehearsal(here, *, at_once=2):
    """Give where each instance of h0 that moves would go, on a fork."""

    def task(current):
        statuses = [each for each in accept_drain.instances_of(here.reader, "h0") if drain_method(each).how]
        migrations = [uuid_named(f"dry {uuid_text(status.uuid)}") for status in statuses]
        acts = accept_drain.rehearse_drain(current.store.document, statuses, migrations=migrations, at_once=at_once)
        results = here.roost.outcomes(acts, dry_run=True)
        decided = [result for act, result in zip(acts, results, strict=True) if not isinstance(act, Departure)]
        return {
            status.name: result.picks[0].host if result.is_granted else ""
            for status, result in zip(statuses, decided, strict=True)
        }

    return here.run(task)


def test_all_leave_as_they_are_and_so_many_at_once(here):
    running(here, "one", "two", "three", "four")
    here.power("two", "stop")
    at_rest(here, here.hands)
    asked = drain(here)
    here.turn()
    going = [part.kind for part in here.reader.parts_of(asked.id) if not part.outcome]
    assert going == ["live_migrate", "migrate"]
    assert body_of(here.reader.operation(asked.id), Drain).begun == 2
    found = over(here, asked)
    assert (found.outcome, body_of(found, Drain).problem) == ("done", "")
    parts = here.reader.parts_of(asked.id)
    assert [part.kind for part in parts] == ["live_migrate", "migrate", "live_migrate", "live_migrate"]
    assert {part.outcome for part in parts} == {"done"}
    assert [here.status(name).status for name in ("one", "two", "three", "four")] == [
        "ACTIVE",
        "SHUTOFF",
        "ACTIVE",
        "ACTIVE",
    ]
    assert "h0" not in places(here, "one", "two", "three", "four")
    assert here.hands["h0"].guests == {}
    assert (here.used()["VCPU"], here.open_operations(), len(holders(here))) == (4, [], 4)


def test_never_more_than_so_many_are_on_their_way(here):
    running(here, *(f"i{number}" for number in range(5)))
    asked = drain(here, at_once=1)
    most = 0
    for _ in range(60):
        here.turn()
        most = max(most, sum(not part.outcome for part in here.reader.parts_of(asked.id)))
        for each in here.hands.values():
            each.work()
        pass_time(here, here.hands, 1.0)
        if here.reader.operation(asked.id).outcome:
            break
    assert most == 1
    assert body_of(here.reader.operation(asked.id), Drain).problem == ""
    assert here.hands["h0"].guests == {}


@pytest.mark.parametrize("at_once", [1, 2])
def test_when_the_last_are_on_their_way_it_looks_at_them_from_time_to_time(here, at_once):
    running(here, "one")
    asked = drain(here, at_once=at_once)
    here.turn()
    looking = here.reader.operation(asked.id)
    assert (body_of(looking, Drain).going, looking.due_at_s) == (
        (uuid_named("one"),),
        here.clock.now_s() + here.terms.look_s,
    )


def test_nothing_new_comes_meanwhile(here):
    running(here, "one")
    facts = lambda: here.run(lambda current: current.state.hosts.facts[0])  # noqa: E731  # twice the same
    asked = drain(here)
    assert (facts().is_disabled, facts().disabled_reason) == (True, "it is drained")
    over(here, asked)
    here.build("two", key="two")
    at_rest(here, here.hands)
    assert here.status("two").host in {"h1", "h2"}


def test_it_may_stay_enabled(here):
    running(here, "one")
    over(here, drain(here, is_disabling=False))
    here.build("two", key="two")
    at_rest(here, here.hands)
    assert places(here, "one", "two") == ["h1", "h0"]


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_what_was_rehearsed_is_what_happens(here, at_once):
    names = [f"i{number}" for number in range(6)]
    running(here, *names[:2], in_group=None)
    running(here, *names[2:4], vcpus=2)
    told = rehearsal(here, at_once=at_once)
    before = here.used()
    over(here, drain(here, at_once=at_once))
    assert dict(zip(names[:4], places(here, *names[:4]), strict=True)) == told
    assert here.used() == before


def test_what_finds_no_host_stays_and_is_told_and_the_others_go(here):
    running(here, "one", "two")
    here.build("wide", key="wide", vcpus=4, force_hosts=("h0",))
    here.build("fills", key="fills", vcpus=3, force_hosts=("h1",))
    at_rest(here, here.hands)
    assert rehearsal(here)["wide"] in {"h2", ""}
    here.build("fills too", key="fills too", vcpus=2, force_hosts=("h2",))
    at_rest(here, here.hands)
    assert rehearsal(here)["wide"] == ""
    found = over(here, drain(here))
    assert body_of(found, Drain).problem == "1 of 3 instances stayed on h0"
    assert (found.outcome, places(here, "wide")) == ("failed", ["h0"])
    assert "h0" not in places(here, "one", "two")
    kinds = dict(here.story("wide"))
    assert kinds["drain.stayed"]["problem"].startswith("No valid host was found. ")
    assert (here.status("wide").status, here.open_operations()) == ("ACTIVE", [])


def test_the_flavor_that_moves_name_is_stored_once_with_them(here, monkeypatch):
    running(here, "one", "two")
    flavor = b'{"vcpus":1,"name":"other","memory_mb":1,"root_gb": 0}'  # It is written without the space now.
    document = document_of("flavor", flavor, flavor)
    rows = [replace_row(next_version(here.status(name), flavor_id=document.id)) for name in ("one", "two")]
    here.run(lambda _current: Plan(answer=None, writes=(document,), work=tuple(rows)))
    asked, commit, seen = drain(here), here.store.commit, []
    monkeypatch.setattr(here.store, "commit", lambda items: seen.extend(items) or commit(items))
    over(here, asked)
    begun = next(item for item in seen if any(isinstance(put.row, MigrationRow) for put in item.work))
    named = [put.row.new_flavor_id for put in begun.work if isinstance(put.row, MigrationRow)]
    assert named == [write.id for write in begun.writes if write.kind == "flavor"] * 2 != [document.id] * 2


def test_one_that_cannot_go_as_it_runs_is_stopped_for_it(here):
    running(here, "one")
    broken = failed("guests on h0 cannot move while they run")
    asked = drain(here)
    found = over(here, asked, {("h0", "live_migrate"): [broken] * 9})
    assert (found.outcome, here.status("one").status, here.status("one").host) == ("done", "ACTIVE", "h1")
    assert [(part.kind, part.outcome) for part in here.reader.parts_of(asked.id)] == [
        ("live_migrate", "failed"),
        ("migrate", "done"),
    ]


def test_which_part_of_it_came_first_is_not_told_by_its_number(here):
    running(here, "one")
    asked = drain(here)
    other = Server(here.store.peer(), clock=here.clock)
    try:
        other.conductor("other").turn()
        script = {("h0", kind): [BROKEN] * 9 for kind in WAYS}
        found = over(here, asked, script)
    finally:
        other.stop()
    assert [part.kind for part in here.reader.parts_of(asked.id)] == ["migrate", "live_migrate"]
    assert body_of(found, Drain).problem == "1 of 1 instances stayed on h0"


def test_the_end_is_told_with_what_came_of_it(here):
    running(here, "one")
    there = over(here, drain(here))
    stayed = over(here, drain(here, "h1", key="broken"), {("h1", kind): [BROKEN] * 9 for kind in WAYS})
    ends = [here.reader.events_of(each.id, newest=1)[0] for each in (there, stayed)]
    assert [(end.kind, msgspec.json.decode(end.body)) for end in ends] == [
        ("drain.done", {"host": "h0"}),
        ("drain.failed", {"host": "h1", "problem": "1 of 1 instances stayed on h1"}),
    ]


def test_one_that_cannot_go_at_all_is_told(here):
    running(here, "one", "two")
    script = {("h0", kind): [BROKEN] * 9 for kind in WAYS}
    found = over(here, drain(here), script)
    assert body_of(found, Drain).problem == "2 of 2 instances stayed on h0"
    assert [here.status(name).status for name in ("one", "two")] == ["ACTIVE", "ACTIVE"]
    assert dict(here.story("one"))["drain.stayed"]["problem"] == here.status("one").fault


def test_one_that_is_shelved_leaves_what_it_held(here):
    running(here, "one")
    here.terms = replace(here.terms, shelved_offload_time_s=-1.0)
    here.change("one", "shelve")
    at_rest(here, here.hands, {("h0", "save"): [Answer(outcome="ok", saved="saved")]})
    assert here.status("one").status == "SHELVED"
    found = over(here, drain(here))
    assert (found.outcome, here.status("one").status, here.used()["VCPU"]) == ("done", "SHELVED_OFFLOADED", 0)


def test_one_that_somebody_works_on_or_that_is_in_error_stays(here):
    running(here, "one", "two")
    here.change("one", "rebuild")
    at_rest(here, here.hands, {("h0", "rebuild"): [failed("no image")]})
    here.power("two", "stop")
    found = over(here, drain(here))
    assert body_of(found, Drain).problem == "2 of 2 instances stayed on h0"
    assert dict(here.story("one"))["drain.stayed"] == {"problem": "an instance in status ERROR is not moved"}
    assert "its task is powering-off" in dict(here.story("two"))["drain.stayed"]["problem"]


def test_one_whose_host_is_asked_how_it_is_goes_when_that_is_known(here):
    running(here, "one", "two")
    h0 = here.hands["h0"]
    h0.guests[uuid_named("one")] = "stopped"
    h0.register()
    assert here.status("one").task == "syncing"
    asked = drain(here)
    here.turn()
    assert [part.kind for part in here.reader.parts_of(asked.id)] == ["live_migrate"]
    found = over(here, asked)
    assert (found.outcome, body_of(found, Drain).problem) == ("done", "")
    assert [part.kind for part in here.reader.parts_of(asked.id)] == ["live_migrate", "migrate"]
    assert [here.status(name).status for name in ("one", "two")] == ["SHUTOFF", "ACTIVE"]
    assert "h0" not in places(here, "one", "two")


def test_an_instance_that_ends_meanwhile_is_not_missed(here):
    running(here, "one", "two", "three")
    asked = drain(here, at_once=1)
    here.delete("three")
    here.delete("one")
    found = over(here, asked)
    assert (found.outcome, body_of(found, Drain).problem) == ("done", "")
    assert [here.status(name).status for name in ("one", "two", "three")] == ["DELETED", "ACTIVE", "DELETED"]


def test_a_host_without_instances_is_left_at_once(here):
    found = over(here, drain(here))
    assert (found.outcome, here.reader.parts_of(found.id)) == ("done", [])


def test_it_is_cancelled_and_those_on_their_way_arrive(here):
    running(here, "one", "two", "three")
    asked = drain(here, at_once=1)
    here.turn()
    cancel = lambda: here.run(  # noqa: E731  # twice the same
        lambda _current: accept_drain.cancel(here.reader, uuid_named("drain"), now_s=here.clock.now_s())
    )
    cancel()
    cancel()
    found = over(here, asked)
    assert body_of(found, Drain).problem == "it was cancelled: 2 of 3 instances stayed on h0"
    assert sorted(places(here, "one", "two", "three")) == ["h0", "h0", "h1"]
    with pytest.raises(Conflict, match="is over"):
        cancel()
    with pytest.raises(NotFound):
        here.run(lambda _current: accept_drain.cancel(here.reader, uuid_named("nobody"), now_s=0.0))
    build = here.reader.operations(most=1)[0]
    with pytest.raises(Conflict, match="is a build: only a drain can be cancelled"):
        here.run(lambda _current: accept_drain.cancel(here.reader, uuid_text(build.uuid), now_s=0.0))


def test_a_host_that_is_not_there_is_evacuated_and_not_drained(here):
    here.hands["h0"].leave()
    with pytest.raises(Conflict, match="can be evacuated, and not be moved"):
        drain(here)
    assert here.open_operations() == []


def test_a_host_that_goes_meanwhile_ends_it(here):
    running(here, "one", "two", "three")
    asked = drain(here, at_once=1)
    here.turn()
    here.hands["h0"].leave()
    found = over(here, asked, turns=300)
    assert (found.outcome, body_of(found, Drain).problem) == ("failed", "3 of 3 instances stayed on h0")


def test_asked_again_with_the_same_key_it_is_the_same(here):
    running(here, "one")
    assert drain(here).id == drain(here).id


def test_members_of_a_server_group_stay_apart(here):
    here.build("one", key="one", in_group="apart", force_hosts=("h0",))
    here.build("two", key="two", in_group="apart", force_hosts=("h1",))
    at_rest(here, here.hands)
    over(here, drain(here))
    assert places(here, "one", "two") == ["h2", "h1"]
