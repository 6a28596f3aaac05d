"""A tree that is copied, and one that threads share."""

import copy
import sys
import threading

import pytest

from roost.compute.providers.provider_tree import TREES_LOCK, ProviderTree
from tests.support.fleets.provider_trees import everything, planted, record
from tests.support.fleets.worlds import uuid_named


def test_a_deep_copy_is_equal_and_changes_by_itself():
    tree = planted()
    before = everything(tree)
    twin = copy.deepcopy(tree)
    assert everything(twin) == before
    twin.update_inventory("host", {"VGPU": {"total": 1}}, 9)
    twin.add_traits("cell1", "CUSTOM_C")
    twin.remove("cell0")
    twin.new_child("new", "pool")
    assert everything(tree) == before
    tree.remove("pool")
    assert twin.exists("new")


def test_what_holds_one_tree_twice_holds_one_copy_twice():
    tree = planted()
    pair = copy.deepcopy([tree, tree])
    assert pair[0] is pair[1]
    assert pair[0] is not tree


def test_all_trees_wait_for_one_lock_and_nothing_of_the_caller_runs_in_it():
    one, other = planted(), ProviderTree()
    seen = []

    def looking(names):
        for name in names:
            seen.append(not TREES_LOCK.locked())
            yield name

    one.update_traits("host", looking(["CUSTOM_A"]))
    one.update_resources("host", {"PMEM": looking(["ns0"])})
    one.populate_from_iterable(looking([record("new")]))
    assert seen == [True, True, True]
    with TREES_LOCK:
        waiting = [
            threading.Thread(target=act, args=("a", uuid_named("a")), daemon=True)
            for act in (one.new_root, other.new_root)
        ]
        for thread in waiting:
            thread.start()
        assert "a" not in {each.name for each in one._forest.providers.values()}
        assert other._forest.providers == {}
    for thread in waiting:
        thread.join()
    assert one.exists("a")
    assert other.exists("a")


@pytest.fixture
def hasty():
    """Let threads change places as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def race(*acts):
    """Run acts in threads of their own, all at once; give what they raised."""
    barrier, errors = threading.Barrier(len(acts)), []

    def run(act):
        barrier.wait()
        try:
            act()
        except Exception as error:  # noqa: BLE001  # whatever it is, the test tells it
            errors.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.usefixtures("hasty")
def test_no_edit_of_threads_that_race_is_lost():
    tree = planted()

    def edit(number):
        for turn in range(40):
            tree.add_traits("host", f"CUSTOM_{number}_{turn}")
            tree.add_aggregates("host", f"{number}-{turn}")
            tree.new_child(f"child-{number}-{turn}", "host")

    assert race(*(lambda number=number: edit(number) for number in range(6))) == []
    assert len(tree.data("host").traits) == len(tree.data("host").aggregates) == 2 + 240
    assert len(tree.get_provider_uuids("host")) == 4 + 240


@pytest.mark.usefixtures("hasty")
def test_of_threads_that_race_for_one_name_one_wins():
    tree = planted()
    for turn in range(20):
        errors = race(*[lambda turn=turn: tree.new_child(f"child-{turn}", "pool")] * 4)
        assert [str(error) for error in errors] == [f"provider 'child-{turn}' exists already"] * 3
    assert len(tree.get_provider_uuids("pool")) == 21


@pytest.mark.usefixtures("hasty")
def test_who_reads_or_copies_in_between_sees_a_whole_tree():
    tree = planted()
    sizes = set()

    def replace():
        for _ in range(60):
            tree.populate_from_iterable([record("host")])
            tree.populate_from_iterable([record("cell0", "host"), record("device", "cell0"), record("host")])

    def look():
        for _ in range(120):
            sizes.add(len(tree.get_provider_uuids_in_tree("host")))
            sizes.add(len(everything(copy.deepcopy(tree))) - 1)

    assert race(replace, look, look) == []
    assert sizes <= {1, 3, 4}
