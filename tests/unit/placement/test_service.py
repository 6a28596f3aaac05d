import msgspec
import pytest

from roost.app import open_roost
from roost.errors import BadRequest, NotFound
from roost.model.group import ServerGroup
from roost.model.names import standard_resource_classes, standard_traits
from roost.model.provider import Inventory, ProviderSpec
from roost.model.writes import DropSymbol, Item, PutSymbol
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import aggregate, digest, hosts, roost_with, uuid_named


def provider(name="new", **changes):
    return msgspec.structs.replace(ProviderSpec(uuid=uuid_named(name), name=name), **changes)


@pytest.mark.parametrize(
    ("spec", "error", "problem"),
    [
        (provider(uuid="garbage"), BadRequest, "'garbage' is not a valid UUID"),
        (provider(uuid=uuid_named("h0")), BadRequest, "uuid .* is taken"),
        (provider(uuid=uuid_named("h0").upper()), BadRequest, "uuid .* is taken"),
        (provider(name="h0", uuid=uuid_named("x")), BadRequest, "name 'h0' is taken"),
        (provider(parent_uuid=uuid_named("nobody")), BadRequest, "its parent .* is not known"),
        (provider(parent_uuid=uuid_named("new")), BadRequest, "its parent .* is not known"),
        (provider(aggregates=frozenset({uuid_named("nobody")})), NotFound, "no such aggregate"),
        (provider(inventories={"GOLD": Inventory(total=1)}), BadRequest, "'GOLD' is neither"),
        (provider(traits=frozenset({"FAST"})), BadRequest, "'FAST' is neither"),
    ],
)
def test_invalid_provider_is_refused_and_nothing_is_written(spec, error, problem):
    roost = roost_with(hosts(1))
    before = digest(roost.state)
    with pytest.raises(error, match=problem):
        roost.placement.create_providers([provider("fine"), spec])
    assert digest(roost.state) == before


def test_two_providers_of_one_call_may_not_share_a_name_or_uuid():
    roost = roost_with()
    with pytest.raises(BadRequest, match="is taken"):
        roost.placement.create_providers([provider("a"), provider("b", uuid=uuid_named("a"))])
    with pytest.raises(BadRequest, match="is taken"):
        roost.placement.create_providers([provider("a"), provider("a", uuid=uuid_named("b"))])


def test_parents_must_be_created_before_their_children():
    roost = roost_with()
    with pytest.raises(BadRequest, match="parent"):
        roost.placement.create_providers([provider("child", parent_uuid=uuid_named("top")), provider("top")])
    roost.placement.create_providers([provider("top"), provider("child", parent_uuid=uuid_named("top"))])
    roost.placement.create_providers([provider("grandchild", parent_uuid=uuid_named("child"))])
    rows = roost.state.providers
    assert [rows.names[row] for row in rows.rows_of_tree(rows.row_of_name["top"])] == ["top", "child", "grandchild"]


def test_any_spelling_of_a_uuid_is_accepted():
    roost = roost_with(aggregate("a"))
    root = provider("h", uuid=uuid_named("h").upper(), aggregates=frozenset({uuid_named("a").upper()}))
    child = provider("child", parent_uuid=uuid_named("h").replace("-", ""))
    roost.placement.create_providers([root, child])
    assert uuid_named("h") in roost.state.providers.row_of_uuid
    assert len(roost.state.providers.tree) == 1


def test_one_call_can_create_thousands_of_providers():
    roost = roost_with()
    roost.placement.create_providers([provider(f"p{number}") for number in range(2500)])
    assert len(roost.state.providers) == 2500


def test_custom_names_get_unique_numbers():
    roost = roost_with()
    roost.placement.ensure_names(resource_classes=["CUSTOM_A", "VCPU"], traits=["CUSTOM_A", "HW_CPU_X86_AVX"])
    roost.placement.ensure_names(resource_classes=["CUSTOM_B"], traits=["CUSTOM_B"])
    classes, traits = roost.state.class_ids, roost.state.trait_ids
    numbers = [*map(classes.id_of, classes), *map(traits.id_of, traits)]
    assert len(set(numbers)) == len(classes) + len(traits)
    assert classes.id_of("VCPU") == 1


def test_new_database_has_the_standard_names():
    store = MemoryStore()
    state = roost_with(store=store).state
    assert (set(state.class_ids), set(state.trait_ids)) == (set(standard_resource_classes()), standard_traits())
    assert min(state.trait_ids.id_of(name) for name in state.trait_ids) > 1 << 16
    position = state.position
    assert position == 1
    assert roost_with(store=store.peer()).state.position == position


def test_standard_traits_are_added_to_a_database_with_other_traits():
    store = MemoryStore()
    symbols = [PutSymbol("trait", 65_537, "CUSTOM_A"), PutSymbol("trait", 65_538, "HW_CPU_X86_AVX")]
    store.commit([Item(tuple(symbols)), Item((DropSymbol("trait", 65_537),))])
    traits = roost_with(store=store).state.trait_ids
    assert set(traits) == standard_traits()
    numbers = [traits.id_of(name) for name in traits]
    assert len(set(numbers)) == len(traits)
    assert 65_537 not in numbers
    assert traits.id_of("HW_CPU_X86_AVX") == 65_538


def test_numbers_of_consumer_types_are_above_all_others():
    roost = roost_with()
    roost.placement.ensure_names(consumer_types=["INSTANCE", "MIGRATION"])
    types = roost.state.consumer_types
    assert sorted(filter(None, map(types.id_of, types))) == [(1 << 32) + 1, (1 << 32) + 2]
    with pytest.raises(BadRequest, match="'instance' is not a consumer type"):
        roost.placement.ensure_names(consumer_types=["instance"])


def test_name_keeps_the_number_that_the_first_process_gave_it():
    store = MemoryStore()
    one, other = roost_with(store=store), roost_with(store=store.peer())
    other.placement.ensure_names(traits=["CUSTOM_B", "CUSTOM_C"])
    one.placement.ensure_names(traits=["CUSTOM_A", "CUSTOM_B"])
    other.placement.refresh()
    for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C"):
        assert one.state.trait_ids.id_of(name) == other.state.trait_ids.id_of(name) is not None


def test_number_of_a_dropped_name_is_not_reused():
    store = MemoryStore()
    roost = roost_with(store=store)
    roost.placement.ensure_names(resource_classes=["CUSTOM_A"])
    number = roost.state.class_ids.id_of("CUSTOM_A")
    assert store.commit([Item((DropSymbol("resource_class", number),))]).refusals == [None]
    reopened = roost_with(store=store.peer())
    reopened.placement.ensure_names(resource_classes=["CUSTOM_A"])
    assert reopened.state.class_ids.id_of("CUSTOM_A") == number + 1


def test_release_counts_consumers_and_refuses_an_invalid_uuid():
    roost = roost_with(hosts(1))
    assert roost.placement.release([uuid_named("nobody")]) == 0
    with pytest.raises(BadRequest, match="consumer 'garbage' is not a valid UUID"):
        roost.placement.release(["garbage"])


@pytest.mark.parametrize("name", ["total", "reserved", "min_unit", "max_unit", "step_size"])
def test_inventory_amounts_must_be_whole_numbers(name):
    with pytest.raises(ValueError, match=f"{name} must be a whole number, got 1.5"):
        Inventory(**{"total": 8, name: 1.5})


def test_allocation_ratio_can_be_a_large_integer(tmp_path):
    huge = provider(inventories={"VCPU": Inventory(total=1, allocation_ratio=10**30)})
    with open_roost(data=tmp_path) as roost:
        roost.placement.create_providers([huge])
    with open_roost(data=tmp_path) as roost:
        assert roost.state.providers.names == ["new"]


@pytest.mark.parametrize("limit", [0, 10**30])
def test_max_server_per_host_must_be_in_bounds(limit):
    with pytest.raises(ValueError, match=r"max_server_per_host must be 1\.\."):
        ServerGroup(uuid=uuid_named("g"), policy="anti-affinity", max_server_per_host=limit)
