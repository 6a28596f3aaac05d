"""Copies of provider trees, and trees that threads share."""

import copy
import sys
import threading

import pytest

from roost.compute.providers.provider_tree import TREES_LOCK, ProviderTree
from tests.support.fleets.provider_trees import provider_tree, record, tree_content
from tests.support.fleets.worlds import uuid_named


def test_deep_copy_is_equal_and_independent():
    tree = provider_tree()
    before = tree_content(tree)
    twin = copy.deepcopy(tree)
    assert tree_content(twin) == before
    twin.update_inventory("host", {"VGPU": {"total": 1}}, 9)
    twin.add_traits("cell1", "CUSTOM_C")
    twin.remove("cell0")
    twin.new_child("new", "pool")
    assert tree_content(tree) == before
    tree.remove("pool")
    assert twin.exists("new")


def test_deep_copy_keeps_shared_references():
    tree = provider_tree()
    pair = copy.deepcopy([tree, tree])
    assert pair[0] is pair[1]
    assert pair[0] is not tree


def test_all_trees_share_one_lock_and_run_no_caller_code_under_it():
    one, other = provider_tree(), ProviderTree()
    lock_states = []

    def record_lock(names):
        """Yield the names, and record that the lock is free."""
        for name in names:
            lock_states.append(not TREES_LOCK.locked())
            yield name

    one.update_traits("host", record_lock(["CUSTOM_A"]))
    one.update_resources("host", {"PMEM": record_lock(["ns0"])})
    one.populate_from_iterable(record_lock([record("new")]))
    assert lock_states == [True, True, True]
    with TREES_LOCK:
        threads = [
            threading.Thread(target=act, args=("a", uuid_named("a")), daemon=True)
            for act in (one.new_root, other.new_root)
        ]
        for thread in threads:
            thread.start()
        assert "a" not in {each.name for each in one._forest.providers.values()}
        assert other._forest.providers == {}
    for thread in threads:
        thread.join()
    assert one.exists("a")
    assert other.exists("a")


@pytest.fixture
def fast_thread_switching():
    """Switch threads as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def race(*acts):
    """Run functions in parallel threads; return the errors."""
    barrier, errors = threading.Barrier(len(acts)), []

    def run(act):
        barrier.wait()
        try:
            act()
        except Exception as error:  # noqa: BLE001  # the test reports it
            errors.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.usefixtures("fast_thread_switching")
def test_concurrent_edits_are_not_lost():
    tree = provider_tree()

    def edit(number):
        for turn in range(40):
            tree.add_traits("host", f"CUSTOM_{number}_{turn}")
            tree.add_aggregates("host", f"{number}-{turn}")
            tree.new_child(f"child-{number}-{turn}", "host")

    assert race(*(lambda number=number: edit(number) for number in range(6))) == []
    assert len(tree.data("host").traits) == len(tree.data("host").aggregates) == 2 + 240
    assert len(tree.get_provider_uuids("host")) == 4 + 240


@pytest.mark.usefixtures("fast_thread_switching")
def test_one_of_several_threads_wins_a_provider_name():
    tree = provider_tree()
    for turn in range(20):
        errors = race(*[lambda turn=turn: tree.new_child(f"child-{turn}", "pool")] * 4)
        assert [str(error) for error in errors] == [f"provider 'child-{turn}' exists already"] * 3
    assert len(tree.get_provider_uuids("pool")) == 21


@pytest.mark.usefixtures("fast_thread_switching")
def test_concurrent_reads_and_copies_see_a_whole_tree():
    tree = provider_tree()
    sizes = set()

    def replace():
        for _ in range(60):
            tree.populate_from_iterable([record("host")])
            tree.populate_from_iterable([record("cell0", "host"), record("device", "cell0"), record("host")])

    def look():
        for _ in range(120):
            sizes.add(len(tree.get_provider_uuids_in_tree("host")))
            sizes.add(len(tree_content(copy.deepcopy(tree))) - 1)

    assert race(replace, look, look) == []
    assert sizes <= {1, 3, 4}
