"""What the agent of a host remembers beyond its life."""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.compute.agent import agent_journal as journals
from roost.compute.agent.agent_journal import Holding, Journal
from roost.errors import JournalLost
from roost.model.work.guest_use import GuestUse
from roost.model.work.orders import Destroy, OrderAnswer, Power, Spawn
from tests.support.agents.scripted_agents import RUN, order, spec
from tests.support.fleets.devices import pool
from tests.support.permissions import somebody

DONE = OrderAnswer(run=RUN, outcome="ok")
GUESTS = ("a", "b")
NODES = ("one", "two")

acts = st.one_of(
    st.tuples(st.sampled_from(["begin", "finish", "take", "forget"]), st.sampled_from(GUESTS), st.integers(1, 4)),
    st.tuples(st.just("hold"), st.sampled_from(GUESTS), st.lists(st.sampled_from(NODES), unique=True)),
    st.tuples(st.sampled_from(["pause", "resume", "keep_node", "forget_node"]), st.sampled_from(GUESTS), st.just(0)),
)


def act(journal, name, guest, number):
    """Write one line."""
    ordered = order(Power(is_on=True), number if isinstance(number, int) else 0, of=guest)
    calls = {
        "begin": lambda: journal.begin([ordered]),
        "finish": lambda: journal.finish(ordered, DONE),
        "take": lambda: journal.take((ordered.operation, number)),
        "forget": lambda: journal.forget((ordered.operation, number)),
        "hold": lambda: journal.hold(guest, [holding(guest, node) for node in number]),
        "pause": lambda: journal.pause(guest),
        "resume": lambda: journal.resume(guest),
        "keep_node": lambda: journal.keep_node(guest, "uuid"),
        "forget_node": lambda: journal.forget_node(guest),
    }
    calls[name]()


def holding(guest, node, holder=None):
    """Give what a guest has of a node: a device."""
    use = GuestUse(devices=(pool(count=1),))
    return Holding(node=node, holder=holder or guest, instance=guest, operation="move", use=use)


def all_of(journal):
    """Give all that a journal knows."""
    return (
        journal.entries(),
        [journal.mark(order(Destroy(), of=guest).instance) for guest in GUESTS],
        [journal.holdings(guest) for guest in GUESTS],
        [dict(journal.instances(node)) for node in NODES],
        journal.paused_guests(),
        journal.node_uuids(),
    )


@settings(max_examples=30)
@given(steps=st.lists(acts, max_size=15))
def test_a_journal_in_a_file_is_as_good_as_one_in_memory_whenever_it_is_opened_again(steps, tmp_path_factory):
    path = tmp_path_factory.mktemp("state") / "journal"
    kept, plain = Journal(path), Journal(None)
    for step in steps:
        act(kept, *step)
        act(plain, *step)
        kept.close()
        kept = Journal(path)
        assert all_of(kept) == all_of(plain)
    kept.close()


def test_an_order_that_is_begun_raises_the_mark_of_its_instance_and_nothing_lowers_it():
    journal = Journal(None)
    journal.begin([order(Power(is_on=True), 2, turn=7)])
    journal.begin([order(Power(is_on=True), 9, turn=3)])
    assert journal.mark(order(Destroy()).instance) == (7, 2)
    journal.finish(order(Power(is_on=True), 2, turn=7), DONE)
    assert journal.mark(order(Destroy()).instance) == (7, 2)


def test_what_operations_keep_is_told_apart_from_what_instances_have():
    journal = Journal(None)
    journal.hold("a", [holding("a", "one"), holding("a", "one", "move")])
    journal.hold("b", [holding("b", "two")])
    assert (list(journal.instances("one")), list(journal.migrations("one"))) == (["a"], ["move"])
    journal.hold("a", [])
    assert (journal.instances("one"), journal.migrations("one"), list(journal.instances("two"))) == ({}, {}, ["b"])


def test_devices_of_those_who_have_some_are_named_for_good(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.hold("a", [holding("a", "one"), holding("a", "one", "move")])
    named = GuestUse(devices=(pool(count=1),), addresses=("0000:81:00.0",))
    journal.name_devices("one", {"a": named, "gone": named})
    assert journal.instances("one") == {"a": named}
    assert journal.migrations("one")["move"].addresses == ()
    journal.close()
    again = Journal(tmp_path / "journal")
    assert again.instances("one") == {"a": named}
    again.close()


def test_what_was_written_before_devices_were_named_is_read(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.hold("a", [holding("a", "one")])
    journal.close()
    with closing(sqlite3.connect(tmp_path / "journal")) as file:
        ((body,),) = file.execute("SELECT body FROM holding").fetchall()
        older = msgspec.msgpack.decode(body)
        del older["use"]["addresses"]
        file.execute("UPDATE holding SET body = ?", [msgspec.msgpack.encode(older)])
        file.commit()
    again = Journal(tmp_path / "journal")
    assert again.instances("one")["a"] == GuestUse(devices=(pool(count=1),))
    again.close()


def test_of_answers_that_the_server_has_only_the_newest_stay(monkeypatch, tmp_path):
    monkeypatch.setattr(journals, "TAKEN_MAX", 3)
    monkeypatch.setattr(journals, "MARKS_MAX", 3)
    monkeypatch.setattr(journals, "_SLACK", 2)
    journal = Journal(tmp_path / "journal")
    unsent = order(Destroy(), of="unsent")
    journal.finish(unsent, DONE)
    for number in range(20):
        ordered = order(Destroy(), of=f"guest {number}")
        journal.begin([ordered])
        journal.finish(ordered, DONE)
        journal.take((ordered.operation, ordered.number))
    journal.close()
    again = Journal(tmp_path / "journal")
    taken = [entry for entry in again.entries() if entry.state == "taken"]
    assert 3 <= len(taken) <= 5
    assert again.entry((unsent.operation, 1)).state == "done"
    assert again.mark(order(Destroy(), of="guest 19").instance) == (1, 1)
    assert again.mark(order(Destroy(), of="guest 0").instance) == (-1, -1)


def test_a_second_agent_cannot_use_the_journal_of_the_first(tmp_path):
    first = Journal(tmp_path / "journal")
    with pytest.raises(JournalLost, match="is used by another agent"):
        Journal(tmp_path / "journal")
    first.close()
    Journal(tmp_path / "journal").close()


def test_a_file_that_is_no_journal_is_refused_with_its_name(tmp_path):
    (tmp_path / "journal").write_bytes(b"no database" * 200)
    with pytest.raises(JournalLost, match=r"journal .*journal cannot be used: file is not a database"):
        Journal(tmp_path / "journal")
    with pytest.raises(JournalLost, match="cannot be used: File exists"):
        Journal(tmp_path / "journal" / "below")


def test_a_journal_of_another_version_is_refused(tmp_path):
    Journal(tmp_path / "journal").close()
    with sqlite3.connect(tmp_path / "journal") as file:
        file.execute("PRAGMA user_version = 9")
    file.close()
    with pytest.raises(JournalLost, match="is of version 9, this agent knows 1"):
        Journal(tmp_path / "journal")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entry SET body = x'81'",
        "UPDATE entry SET body = 5",
        "UPDATE entry SET changed = 'late'",
        "UPDATE entry SET body = CAST(replace(body, 'spawn', x'f0f0f0f0f0') AS BLOB)",
        "UPDATE mark SET turn = 'first'",
        "UPDATE holding SET body = 'text'",
        "UPDATE paused SET instance = x'ff'",
        "UPDATE node SET uuid = x'ff'",
        "UPDATE node SET uuid = CAST(x'ff' AS TEXT)",
    ],
)
def test_a_line_that_makes_no_sense_is_refused(damage, tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.begin([order(Spawn(spec()))])
    journal.hold("a", [holding("a", "one")])
    journal.pause("a")
    journal.keep_node("one", "uuid")
    journal.close()
    with sqlite3.connect(tmp_path / "journal") as file:
        file.execute(damage)
    file.close()
    with pytest.raises(JournalLost, match=r"the agent's journal .*journal cannot be (understood|used)"):
        Journal(tmp_path / "journal")


def test_a_folder_that_cannot_be_written_to_is_told():
    with tempfile.TemporaryDirectory() as folder:  # Others may enter it.
        Path(folder).chmod(0o555)
        with somebody(), pytest.raises(JournalLost, match=r"journal cannot be used: its folder cannot be written to"):
            Journal(Path(folder) / "journal")


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_is_deleted_or_replaced_takes_nothing_more(is_replaced, tmp_path):
    journal = Journal(tmp_path / "state" / "journal")
    journal.keep_node("one", "uuid")
    shutil.move(tmp_path / "state", tmp_path / "away")
    if is_replaced:
        Journal(tmp_path / "state" / "journal").close()
    for write in (lambda: journal.begin([order(Destroy())]), lambda: journal.pause("a")):
        with pytest.raises(JournalLost, match=r"journal .*journal was deleted or replaced while it was used"):
            write()
    journal.close()


def test_a_full_disk_is_told_and_nothing_is_half_written(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.begin([order(Destroy())])
    journal._file.execute("PRAGMA max_page_count = 1")
    with pytest.raises(JournalLost, match="full"):
        journal.begin([order(Spawn(spec(name_of)), of=name_of) for name_of in map(str, range(200))])
    journal.close()
    assert [entry.order.act for entry in Journal(tmp_path / "journal").entries()] == [Destroy()]


def test_what_was_written_before_amounts_and_pieces_were_is_understood():
    assert msgspec.json.decode(b'{"cells": [], "devices": []}', type=GuestUse) == GuestUse()
