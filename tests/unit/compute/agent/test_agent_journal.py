"""The agent's journal, which survives a restart."""

import shutil
import sqlite3
import tempfile
import threading
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
from tests.support.fleets.devices import pci_pool
from tests.support.permissions import unprivileged_user

DONE = OrderAnswer(run=RUN, outcome="ok")
GUESTS = ("a", "b")
NODES = ("one", "two")

writes = st.one_of(
    st.tuples(st.sampled_from(["begin", "finish", "take", "forget"]), st.sampled_from(GUESTS), st.integers(1, 4)),
    st.tuples(st.just("hold"), st.sampled_from(GUESTS), st.lists(st.sampled_from(NODES), unique=True)),
    st.tuples(st.sampled_from(["pause", "resume", "keep_node", "forget_node"]), st.sampled_from(GUESTS), st.just(0)),
)


def write_line(journal, name, guest, number):
    """Write one line."""
    new_order = order(Power(is_on=True), number if isinstance(number, int) else 0, of=guest)
    calls = {
        "begin": lambda: journal.begin([new_order]),
        "finish": lambda: journal.finish(new_order, DONE),
        "take": lambda: journal.take((new_order.operation, number)),
        "forget": lambda: journal.forget((new_order.operation, number)),
        "hold": lambda: journal.hold(guest, [holding(guest, node) for node in number]),
        "pause": lambda: journal.pause(guest),
        "resume": lambda: journal.resume(guest),
        "keep_node": lambda: journal.keep_node(guest, "uuid"),
        "forget_node": lambda: journal.forget_node(guest),
    }
    calls[name]()


def holding(guest, node, holder=None):
    """Return the holding of a guest on a node: one device."""
    use = GuestUse(devices=(pci_pool(count=1),))
    return Holding(node=node, holder=holder or guest, instance=guest, operation="move", use=use)


def contents_of(journal):
    """Return everything in a journal."""
    return (
        journal.entries(),
        [journal.mark(order(Destroy(), of=guest).instance) for guest in GUESTS],
        [journal.holdings(guest) for guest in GUESTS],
        [dict(journal.instances(node)) for node in NODES],
        journal.list_paused(),
        journal.node_uuids(),
    )


@settings(max_examples=30)
@given(steps=st.lists(writes, max_size=15))
def test_reopened_journal_file_matches_one_in_memory(steps, tmp_path_factory):
    path = tmp_path_factory.mktemp("state") / "journal"
    on_disk, in_memory = Journal(path), Journal(None)
    for step in steps:
        write_line(on_disk, *step)
        write_line(in_memory, *step)
        on_disk.close()
        on_disk = Journal(path)
        assert contents_of(on_disk) == contents_of(in_memory)
    on_disk.close()


def test_started_orders_only_raise_the_mark_of_an_instance():
    journal = Journal(None)
    journal.begin([order(Power(is_on=True), 2, turn=7)])
    journal.begin([order(Power(is_on=True), 9, turn=3)])
    assert journal.mark(order(Destroy()).instance) == (7, 2)
    journal.finish(order(Power(is_on=True), 2, turn=7), DONE)
    assert journal.mark(order(Destroy()).instance) == (7, 2)


def test_holdings_of_migrations_are_separate_from_instances():
    journal = Journal(None)
    journal.hold("a", [holding("a", "one"), holding("a", "one", "move")])
    journal.hold("b", [holding("b", "two")])
    assert (list(journal.instances("one")), list(journal.migrations("one"))) == (["a"], ["move"])
    journal.hold("a", [])
    assert (journal.instances("one"), journal.migrations("one"), list(journal.instances("two"))) == ({}, {}, ["b"])


def test_device_addresses_are_stored_for_known_instances(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.hold("a", [holding("a", "one"), holding("a", "one", "move")])
    with_addresses = GuestUse(devices=(pci_pool(count=1),), addresses=("0000:81:00.0",))
    journal.name_devices("one", {"a": with_addresses, "gone": with_addresses})
    assert journal.instances("one") == {"a": with_addresses}
    assert journal.migrations("one")["move"].addresses == ()
    journal.close()
    again = Journal(tmp_path / "journal")
    assert again.instances("one") == {"a": with_addresses}
    again.close()


def test_holding_without_device_addresses_is_readable(tmp_path):
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
    assert again.instances("one")["a"] == GuestUse(devices=(pci_pool(count=1),))
    again.close()


def test_only_the_newest_delivered_answers_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(journals, "TAKEN_MAX", 3)
    monkeypatch.setattr(journals, "MARKS_MAX", 3)
    monkeypatch.setattr(journals, "_SURPLUS", 2)
    journal = Journal(tmp_path / "journal")
    unsent = order(Destroy(), of="unsent")
    journal.finish(unsent, DONE)
    for number in range(20):
        new_order = order(Destroy(), of=f"guest {number}")
        journal.begin([new_order])
        journal.finish(new_order, DONE)
        journal.take((new_order.operation, new_order.number))
    journal.close()
    again = Journal(tmp_path / "journal")
    delivered = [entry for entry in again.entries() if entry.state == "taken"]
    assert 3 <= len(delivered) <= 5
    assert again.entry((unsent.operation, 1)).state == "done"
    assert again.mark(order(Destroy(), of="guest 19").instance) == (1, 1)
    assert again.mark(order(Destroy(), of="guest 0").instance) == (-1, -1)


def test_a_second_agent_cannot_use_the_journal_of_the_first(tmp_path):
    first = Journal(tmp_path / "journal")
    with pytest.raises(JournalLost, match="is used by another agent"):
        Journal(tmp_path / "journal")
    first.close()
    Journal(tmp_path / "journal").close()


def test_file_that_is_not_a_journal_is_refused_by_path(tmp_path):
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
    with pytest.raises(JournalLost, match="has version 9; this agent supports 1"):
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
def test_corrupt_row_is_refused(damage, tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.begin([order(Spawn(spec()))])
    journal.hold("a", [holding("a", "one")])
    journal.pause("a")
    journal.keep_node("one", "uuid")
    journal.close()
    with sqlite3.connect(tmp_path / "journal") as file:
        file.execute(damage)
    file.close()
    with pytest.raises(JournalLost, match=r"the agent's journal .*journal (is malformed|cannot be used)"):
        Journal(tmp_path / "journal")


def test_unwritable_folder_is_a_clear_error():
    with tempfile.TemporaryDirectory() as folder:  # Unlike tmp_path, other users may enter it.
        Path(folder).chmod(0o555)
        with (
            unprivileged_user(),
            pytest.raises(JournalLost, match=r"journal cannot be used: its folder cannot be written to"),
        ):
            Journal(Path(folder) / "journal")


@pytest.mark.parametrize("is_replaced", [False, True])
def test_deleted_or_replaced_journal_rejects_writes(is_replaced, tmp_path):
    journal = Journal(tmp_path / "state" / "journal")
    journal.keep_node("one", "uuid")
    shutil.move(tmp_path / "state", tmp_path / "away")
    if is_replaced:
        Journal(tmp_path / "state" / "journal").close()
    for write in (lambda: journal.begin([order(Destroy())]), lambda: journal.pause("a")):
        with pytest.raises(JournalLost, match=r"journal .*journal was deleted or replaced while it was used"):
            write()
    journal.close()


def test_full_disk_is_an_error_and_leaves_no_partial_write(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.begin([order(Destroy())])
    journal._file.execute("PRAGMA max_page_count = 1")
    with pytest.raises(JournalLost, match="full"):
        journal.begin([order(Spawn(spec(name_of)), of=name_of) for name_of in map(str, range(200))])
    journal.close()
    assert [entry.order.act for entry in Journal(tmp_path / "journal").entries()] == [Destroy()]


def test_guest_use_without_amounts_and_pieces_is_decoded():
    assert msgspec.json.decode(b'{"cells": [], "devices": []}', type=GuestUse) == GuestUse()


def test_journal_closes_after_the_entry_that_another_thread_writes(tmp_path):
    path = tmp_path / "journal.db"
    journal = Journal(path)
    closer = threading.Thread(target=journal.close)
    with journal._writing() as write:
        write("INSERT INTO node VALUES (?, ?)", "n", "uuid")
        closer.start()
        closer.join(0.2)  # Without the lock, the file is closed now, and this entry is lost.
    closer.join()
    with closing(Journal(path)) as later:
        assert later.node_uuids() == {"n": "uuid"}
    with pytest.raises(JournalLost, match="closed"):
        journal.keep_node("n", "uuid")
