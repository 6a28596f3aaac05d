"""A provider tree does what nested dictionaries do, call by call."""

import copy
import itertools

from hypothesis import given
from hypothesis import strategies as st

from roost.compute.providers.provider_tree import ProviderTree
from tests.reference.provider_tree import PlainTree

# Few of each, so that calls meet; a name may be the uuid of another provider.
UUIDS = [f"uuid{number}" for number in range(6)]
NAMES = [*(f"name{number}" for number in range(6)), "uuid0"]
KNOWN = st.sampled_from([*UUIDS, *NAMES])
GENERATIONS = st.none() | st.integers(0, 3)
TRAITS = ["CUSTOM_A", "CUSTOM_B", "MISC_SHARES_VIA_AGGREGATE"]
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "uuid": st.sampled_from(UUIDS),
            "name": st.sampled_from(NAMES),
            "generation": st.integers(0, 3),
            "parent_provider_uuid": st.none() | st.sampled_from(UUIDS),
        }
    ),
    max_size=5,
)
INVENTORY = st.dictionaries(st.sampled_from(["total", "reserved"]), st.integers(0, 1), max_size=2)
INVENTORIES = st.dictionaries(st.sampled_from(["VCPU", "VGPU"]), INVENTORY, max_size=2)
RESOURCES = st.dictionaries(st.just("PMEM"), st.frozensets(st.integers(0, 1)), max_size=1)


def sets(names):
    return st.frozensets(st.sampled_from(names))


CALLS = st.one_of(
    st.tuples(st.just("populate_from_iterable"), RECORDS),
    st.tuples(st.just("new_root"), st.sampled_from(NAMES), st.sampled_from(UUIDS), GENERATIONS),
    st.tuples(st.just("new_child"), st.sampled_from(NAMES), KNOWN, st.none() | st.sampled_from(UUIDS)),
    st.tuples(st.just("remove"), KNOWN),
    st.tuples(st.just("update_inventory"), KNOWN, INVENTORIES, GENERATIONS),
    st.tuples(st.just("update_traits"), KNOWN, sets(TRAITS), GENERATIONS),
    st.tuples(st.just("update_aggregates"), KNOWN, sets(["a", "b"]), GENERATIONS),
    st.tuples(st.just("update_resources"), KNOWN, RESOURCES),
    sets(TRAITS).flatmap(
        lambda traits: st.tuples(st.sampled_from(["add_traits", "remove_traits"]), KNOWN, *map(st.just, traits))
    ),
    sets(["a", "b"]).flatmap(
        lambda names: st.tuples(st.sampled_from(["add_aggregates", "remove_aggregates"]), KNOWN, *map(st.just, names))
    ),
)


def uuids():
    """Return a source of uuids."""
    return map("fresh{}".format, itertools.count()).__next__


def outcome(tree, method, *arguments):
    """Return what a call returned, or that it was refused."""
    try:
        return getattr(tree, method)(*arguments)
    except ValueError:
        return "refused"


def plain(tree):
    """Return every provider of the plain tree as the fast one tells it, parents first."""
    return [
        (
            each["uuid"],
            each["name"],
            each["generation"],
            parent and parent["uuid"],
            each["inventory"],
            each["traits"],
            each["aggregates"],
            each["resources"],
        )
        for each, parent, _ in tree.walk()
    ]


def told(tree):
    """Return every provider of a tree with all that is known of it, parents first."""
    return [
        (
            each.uuid,
            each.name,
            each.generation,
            each.parent_uuid,
            each.inventory,
            each.traits,
            each.aggregates,
            each.resources,
        )
        for each in map(tree.data, tree.get_provider_uuids())
    ]


def questions(tree):
    """Return the answers to what depends on how providers hang together and are named."""
    return (
        [tree.exists(each) for each in [*UUIDS, *NAMES]],
        [outcome(tree, "get_provider_uuids", each) for each in [*UUIDS, *NAMES]],
        [outcome(tree, "get_provider_uuids_in_tree", each) for each in [*UUIDS, *NAMES]],
        [tree.has_sharing_provider(each) for each in ("VCPU", "VGPU")],
    )


@given(st.lists(CALLS, max_size=25))
def test_a_tree_does_what_nested_dictionaries_do(calls):
    tree, twin = ProviderTree(new_uuid=uuids()), PlainTree(uuids())
    for call in calls:
        before = copy.deepcopy(tree)
        known = told(before)
        assert outcome(tree, *call) == outcome(twin, *call), call
        assert told(tree) == plain(twin), call
        assert told(before) == known
    assert questions(tree) == questions(twin)
