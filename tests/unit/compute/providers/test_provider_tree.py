import copy

import pytest

from roost.compute.providers.provider_tree import ProviderTree
from tests.support.fleets.provider_trees import NAMES, VCPU, provider_tree, record, tree_content, uuids
from tests.support.fleets.worlds import uuid_named


def assert_refused(tree, act, *fragments):
    """Assert that a call raises ValueError with these fragments, and changes nothing."""
    before = tree_content(tree)
    with pytest.raises(ValueError) as error:
        act()
    assert [word for word in fragments if word not in str(error.value)] == []
    assert tree_content(tree) == before


# --- look-up ---


def test_a_new_tree_is_empty():
    tree = ProviderTree()
    assert (tree.roots, tree.get_provider_uuids(), tree.has_sharing_provider("VCPU")) == ([], [], False)


def test_roots_are_the_providers_without_a_parent():
    tree = provider_tree()
    assert tree.roots == [tree.data("host"), tree.data("pool")]
    assert [root.parent_uuid for root in tree.roots] == [None, None]


def test_provider_uuids_list_parents_first():
    tree = provider_tree()
    assert tree.get_provider_uuids() == uuids(*NAMES)
    assert tree.get_provider_uuids("cell0") == tree.get_provider_uuids(*uuids("cell0")) == uuids("cell0", "device")
    assert tree.get_provider_uuids("pool") == uuids("pool")


def test_uuids_in_tree_are_the_same_for_every_provider_of_a_tree():
    tree = provider_tree()
    for name in NAMES[:4]:
        assert tree.get_provider_uuids_in_tree(name) == uuids(*NAMES[:4])
    assert tree.get_provider_uuids_in_tree(uuid_named("pool")) == uuids("pool")


def test_a_provider_exists_by_name_and_by_uuid():
    tree = provider_tree()
    assert all(tree.exists(name) and tree.exists(uuid_named(name)) for name in NAMES)
    assert not tree.exists("nobody")
    assert not tree.exists("")


def test_uuid_takes_precedence_over_a_name():
    tree = provider_tree()
    tree.new_root(uuid_named("pool"), uuid_named("confusing"))
    assert tree.data(uuid_named("pool")).name == "pool"


def test_ambiguous_name_is_refused():
    tree = provider_tree()
    tree.new_child("pool", "host", uuid_named("other"))
    assert tree.exists("pool")
    assert_refused(tree, lambda: tree.update_traits("pool", ()), "'pool'", *uuids("pool", "other"))
    assert tree.data(uuid_named("other")).parent_uuid == uuid_named("host")
    tree.remove(uuid_named("other"))
    assert tree.data("pool").uuid == uuid_named("pool")


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("get_provider_uuids", ()),
        ("get_provider_uuids_in_tree", ()),
        ("data", ()),
        ("remove", ()),
        ("has_inventory", ()),
        ("has_inventory_changed", ({},)),
        ("update_inventory", ({}, 7)),
        ("has_traits", ((),)),
        ("have_traits_changed", ((),)),
        ("update_traits", ((), 7)),
        ("add_traits", ("CUSTOM_A",)),
        ("remove_traits", ("CUSTOM_A",)),
        ("in_aggregates", ((),)),
        ("have_aggregates_changed", ((),)),
        ("update_aggregates", ((), 7)),
        ("add_aggregates", ("a",)),
        ("remove_aggregates", ("a",)),
        ("update_resources", ({},)),
    ],
)
def test_unknown_provider_is_named_in_the_error(method, arguments):
    tree = provider_tree()
    assert_refused(tree, lambda: getattr(tree, method)("nobody", *arguments), "there is no provider 'nobody'")


# --- populate from records ---


def test_populating_from_nothing_changes_nothing():
    tree = provider_tree()
    before = tree_content(tree)
    tree.populate_from_iterable([])
    assert tree_content(tree) == before


def test_records_may_come_in_any_order_and_from_any_iterable():
    tree = ProviderTree()
    tree.populate_from_iterable(iter([record("c", "b"), record("b", "a", 5), record("d", "a"), record("a")]))
    assert tree.get_provider_uuids() == uuids("a", "b", "c", "d")
    assert (tree.data("b").generation, tree.data("b").parent_uuid) == (5, uuid_named("a"))


def test_other_providers_stay_when_one_is_added_below_them():
    tree = provider_tree()
    before = tree_content(tree)
    tree.populate_from_iterable([record("port", "cell1")])
    assert tree.get_provider_uuids("cell1") == uuids("cell1", "port")
    assert [each for each in tree_content(tree) if each.name != "port"] == before


def test_replaced_provider_is_empty_and_has_no_children():
    tree = provider_tree()
    tree.populate_from_iterable([record("cell0", "host", 9)])
    assert tree.get_provider_uuids("host") == uuids("host", "cell1", "cell0")
    cell = tree.data("cell0")
    assert (cell.generation, cell.inventory, cell.traits, cell.aggregates, cell.resources) == (9, {}, set(), set(), {})
    assert tree.has_traits("cell1", {"CUSTOM_A"})


def test_replaced_provider_keeps_children_in_the_same_records():
    tree = provider_tree()
    tree.populate_from_iterable([record("cell1", "host"), record("host")])
    assert tree.get_provider_uuids("host") == uuids("host", "cell1")
    assert not tree.has_inventory("cell1")
    assert [tree.exists(name) for name in ("cell0", "device", "pool")] == [False, False, True]


def test_a_provider_may_move_and_be_renamed():
    tree = provider_tree()
    tree.populate_from_iterable([record("device", "pool") | {"name": "gpu"}])
    assert tree.get_provider_uuids("pool") == uuids("pool", "device")
    assert (tree.exists("device"), tree.data("gpu").uuid) == (False, uuid_named("device"))


def test_last_of_two_records_with_one_uuid_wins():
    tree = ProviderTree()
    tree.populate_from_iterable([record("a", generation=1), record("a", generation=2)])
    assert [root.generation for root in tree.roots] == [2]


def test_unknown_parent_is_named_and_changes_nothing():
    tree = provider_tree()
    assert_refused(
        tree, lambda: tree.populate_from_iterable([record("host"), record("x", "nobody")]), "'x'", uuid_named("nobody")
    )


def test_parent_below_a_replaced_provider_is_unknown():
    tree = provider_tree()
    assert_refused(
        tree,
        lambda: tree.populate_from_iterable([record("host"), record("new", "cell0")]),
        "'new'",
        uuid_named("cell0"),
        "is unknown",
    )


def test_a_provider_below_itself_is_refused():
    tree = provider_tree()
    assert_refused(tree, lambda: tree.populate_from_iterable([record("x", "x")]), "'x' would be below itself")
    circle = [record("a", "b"), record("b", "c"), record("c", "a"), record("pool")]
    assert_refused(tree, lambda: tree.populate_from_iterable(circle), "would be below itself")


def test_record_with_a_missing_field_is_refused():
    tree = provider_tree()
    old = record("x")
    del old["parent_provider_uuid"]
    assert_refused(
        tree, lambda: tree.populate_from_iterable([record("host"), old]), "lacks parent_provider_uuid", "'x'"
    )


# --- new and removed providers ---


def test_new_root_returns_its_uuid_and_is_empty():
    tree = provider_tree()
    assert tree.new_root("other", uuid_named("other"), 4) == uuid_named("other")
    root = tree.data("other")
    assert (root.name, root.generation, root.parent_uuid) == ("other", 4, None)
    assert (root.inventory, root.traits, root.aggregates, root.resources) == ({}, set(), set(), {})
    tree.new_root("unknown to Placement", uuid_named("later"))
    assert tree.data(uuid_named("later")).generation is None


def test_new_root_with_an_existing_uuid_is_refused():
    tree = provider_tree()
    assert_refused(tree, lambda: tree.new_root("other", uuid_named("device")), uuid_named("device"), "exists already")


def test_new_child_accepts_the_parent_by_name_or_uuid():
    tree = provider_tree()
    assert tree.new_child("a", "device", uuid_named("a"), generation=3) == uuid_named("a")
    assert tree.new_child("b", uuid_named("device"), uuid=uuid_named("b")) == uuid_named("b")
    assert tree.new_child("c", "device", uuid_named("c"), 5) == uuid_named("c")
    assert tree.get_provider_uuids("device") == uuids("device", "a", "b", "c")
    assert (tree.data("a").generation, tree.data("a").parent_uuid) == (3, uuid_named("device"))
    assert tree.data("c").generation == 5


def test_child_without_a_uuid_gets_a_new_one():
    tree = provider_tree()
    first, second = tree.new_child("a", "pool"), tree.new_child("b", "pool")
    assert (tree.data(first).name, tree.data(second).name) == ("a", "b")
    assert first != second


def test_tree_accepts_a_uuid_generator():
    tree = ProviderTree(new_uuid=iter(uuids("one", "two")).__next__)
    tree.new_root("host", uuid_named("host"))
    assert [tree.new_child("a", "host"), tree.new_child("b", "host")] == uuids("one", "two")


def test_existing_child_is_refused_by_uuid_or_else_by_name():
    tree = provider_tree()
    assert_refused(
        tree, lambda: tree.new_child("new", "host", uuid_named("pool")), uuid_named("pool"), "exists already"
    )
    assert_refused(tree, lambda: tree.new_child("pool", "host"), "'pool' exists already")


def test_child_of_an_unknown_parent_is_refused():
    tree = provider_tree()
    assert_refused(tree, lambda: tree.new_child("new", "nobody"), "there is no provider 'nobody'")
    assert_refused(tree, lambda: tree.new_child("new", uuid_named("nobody"), uuid_named("new")), uuid_named("nobody"))


def test_remove_drops_the_subtree_and_allows_it_to_return():
    tree = provider_tree()
    tree.remove("cell0")
    assert tree.get_provider_uuids() == uuids("host", "cell1", "pool")
    assert not any(tree.exists(each) for each in ("cell0", "device", *uuids("cell0", "device")))
    tree.remove(uuid_named("host"))
    assert tree.get_provider_uuids() == uuids("pool")
    tree.new_child("cell0", "pool", uuid_named("cell0"))
    assert tree.get_provider_uuids() == uuids("pool", "cell0")


# --- inventories, traits, aggregates and resources ---


def test_data_returns_everything_of_a_provider():
    data = provider_tree().data("device")
    assert (data.uuid, data.name, data.generation, data.parent_uuid) == (
        uuid_named("device"),
        "device",
        1,
        uuid_named("cell0"),
    )
    assert data.inventory == {"VCPU": VCPU}
    assert data.traits == {"CUSTOM_A", "CUSTOM_B"}
    assert data.aggregates == {*uuids("agg0", "agg1")}
    assert data.resources == {"PMEM": {"ns0", "ns1"}}


def test_arguments_and_results_are_copies():
    tree = ProviderTree()
    tree.new_root("host", uuid_named("host"))
    inventory, traits, resources = {"VCPU": {"total": 8}}, {"CUSTOM_A"}, {"PMEM": {"ns0"}}
    tree.update_inventory("host", inventory)
    tree.update_traits("host", traits)
    tree.update_resources("host", resources)
    before = copy.deepcopy(tree.data("host"))
    for mine in (inventory, tree.data("host").inventory, tree.roots[0].inventory):
        mine["VCPU"]["total"] = 1
        mine["VGPU"] = {"total": 1}
    traits.add("CUSTOM_B")
    resources["PMEM"].add("ns1")
    tree.data("host").resources.clear()
    assert tree.data("host") == before
    tree.update_traits("host", ())
    assert before.traits == {"CUSTOM_A"}


def test_has_inventory_is_true_for_any_class():
    tree = provider_tree()
    assert tree.has_inventory("host")
    assert tree.update_inventory("host", {})
    assert not tree.has_inventory("host")


@pytest.mark.parametrize(
    ("new", "has_changed"),
    [
        ({"VCPU": VCPU}, False),
        ({}, True),
        ({"VGPU": VCPU}, True),
        ({"VCPU": VCPU, "VGPU": {"total": 1}}, True),
        ({"VCPU": VCPU | {"total": 9}}, True),
        ({"VCPU": VCPU | {"step_size": 1}}, True),
        ({"VCPU": {"total": 8}}, False),
        ({"VCPU": {}}, False),
        ({"VCPU": {"total": 9}}, True),
        ({"VCPU": {"total": 8, "allocation_ratio": 1.0}}, True),
    ],
)
def test_inventory_change_compares_classes_and_given_fields(new, has_changed):
    tree = provider_tree()
    assert tree.has_inventory_changed("host", new) is has_changed
    assert tree.data("host").inventory == {"VCPU": VCPU}
    assert tree.update_inventory("host", new) is has_changed
    assert tree.data("host").inventory == (new if has_changed else {"VCPU": VCPU})
    assert tree.update_inventory("host", new) is False


def test_given_generation_is_set_even_without_a_change():
    tree = provider_tree()
    for update, same in (
        (tree.update_inventory, {"VCPU": VCPU}),
        (tree.update_traits, ["CUSTOM_B", "CUSTOM_A"]),
        (tree.update_aggregates, uuids("agg1", "agg0")),
    ):
        before = tree.data("host").generation
        assert update("host", same) is False
        assert tree.data("host").generation == before
        assert update("host", same, before + 1) is False
        assert tree.data("host").generation == before + 1
        assert update("host", same, generation=0) is False
        assert tree.data("host").generation == 0
        assert update("host", {}, 5) is True
        assert tree.data("host").generation == 5


def test_sharing_provider_needs_the_class_and_the_trait():
    tree = provider_tree()
    assert not tree.has_sharing_provider("VCPU")
    tree.add_traits("pool", "MISC_SHARES_VIA_AGGREGATE")
    assert tree.has_sharing_provider("VCPU")
    assert not tree.has_sharing_provider("DISK_GB")
    tree.update_inventory("host", {"DISK_GB": {"total": 1}})
    assert not tree.has_sharing_provider("DISK_GB")


def test_update_resources_replaces_them_and_returns_the_change():
    tree = provider_tree()
    assert not tree.update_resources("host", {"PMEM": ["ns1", "ns0"]})
    assert tree.update_resources("host", {"PMEM": {"ns1"}, "OTHER": {("a", 1)}})
    assert tree.data("host").resources == {"PMEM": {"ns1"}, "OTHER": {("a", 1)}}
    assert tree.data("cell0").resources == {"PMEM": {"ns0", "ns1"}}


def test_traits_and_aggregates_behave_as_sets():
    tree = provider_tree()
    for has, changed, update, add, remove, held in (
        (
            tree.has_traits,
            tree.have_traits_changed,
            tree.update_traits,
            tree.add_traits,
            tree.remove_traits,
            lambda: tree.data("host").traits,
        ),
        (
            tree.in_aggregates,
            tree.have_aggregates_changed,
            tree.update_aggregates,
            tree.add_aggregates,
            tree.remove_aggregates,
            lambda: tree.data("host").aggregates,
        ),
    ):
        assert update("host", ["a", "b"]) is True
        assert [has("host", wanted) for wanted in ((), ["a"], {"b", "a"}, ["a", "c"])] == [True, True, True, False]
        assert [changed("host", new) for new in (["b", "a", "a"], ["a"], [], ["a", "b", "c"])] == [
            False,
            True,
            True,
            True,
        ]
        add("host", "c", "a")
        assert held() == {"a", "b", "c"}
        remove("host", "b", "nothing")
        assert held() == {"a", "c"}
        add("host")
        remove("host")
        assert held() == {"a", "c"}
        assert update("host", iter(())) is True
        assert held() == set()
        assert not changed("host", ())
    assert tree.has_traits("cell0", {"CUSTOM_A"})
    assert tree.in_aggregates("cell0", uuids("agg0"))


def test_single_string_is_refused_as_a_collection():
    tree = provider_tree()
    for act in (tree.update_traits, tree.has_traits, tree.have_traits_changed):
        assert_refused(tree, lambda act=act: act("host", "CUSTOM_A"), "traits", "'CUSTOM_A'")
    for act in (tree.update_aggregates, tree.in_aggregates, tree.have_aggregates_changed):
        assert_refused(tree, lambda act=act: act("host", "a"), "aggregates", "'a'")


def test_inventory_that_is_not_a_record_is_refused():
    tree = provider_tree()
    assert_refused(tree, lambda: tree.update_inventory("host", {"VCPU": 8}, 9), "VCPU", "got 8")
