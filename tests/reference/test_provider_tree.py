"""A provider tree behaves like nested dictionaries, call by call."""

import copy
import itertools

from hypothesis import given
from hypothesis import strategies as st

from roost.compute.providers.provider_tree import ProviderTree
from tests.reference.provider_tree import PlainTree

# Few values of each kind, so that calls collide; a name may be the uuid of another provider.
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
    """Return a function that generates uuids."""
    return map("fresh{}".format, itertools.count()).__next__


def outcome(tree, method, *arguments):
    """Return the result of a call, or "refused"."""
    try:
        return getattr(tree, method)(*arguments)
    except ValueError:
        return "refused"


def plain(tree):
    """Return every provider of the plain tree in the form of ``content``, parents first."""
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


def content(tree):
    """Return the data of every provider of a tree, parents first."""
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


def lookups(tree):
    """Return the results of all lookups that depend on names and on the structure of the tree."""
    return (
        [tree.exists(each) for each in [*UUIDS, *NAMES]],
        [outcome(tree, "get_provider_uuids", each) for each in [*UUIDS, *NAMES]],
        [outcome(tree, "get_provider_uuids_in_tree", each) for each in [*UUIDS, *NAMES]],
        [tree.has_sharing_provider(each) for each in ("VCPU", "VGPU")],
    )


@given(st.lists(CALLS, max_size=25))
def test_provider_tree_behaves_like_nested_dictionaries(calls):
    tree, twin = ProviderTree(new_uuid=uuids()), PlainTree(uuids())
    for call in calls:
        before = copy.deepcopy(tree)
        known = content(before)
        assert outcome(tree, *call) == outcome(twin, *call), call
        assert content(tree) == plain(twin), call
        assert content(before) == known
    assert lookups(tree) == lookups(twin)
