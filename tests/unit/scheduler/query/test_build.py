import pytest

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.image import Image
from roost.model.request import Destination, Request, ResourceGroup
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.query.build import build_query
from roost.scheduler.query.draft import DraftGroup
from roost.scheduler.query.query_string import query_string
from tests.support.fleets.fleets import fleet, uuid_text

STATE = fleet(
    *[HostFacts()] * 3,
    aggregates=[({"availability_zone": "east"}, [0]), ({"availability_zone": "west, far"}, [1]), ({"ssd": "yes"}, [2])],
)
EAST, WEST = uuid_text(1001), uuid_text(1002)


def translate(extra_specs=None, *, state=STATE, flavor=None, **request):
    flavor = flavor or Flavor(name="f", vcpus=2, memory_mb=512, root_gb=10, extra_specs=extra_specs or {})
    return build_query(Request(flavor=flavor, **request), state, settings=SchedulerSettings())


def groups(*args, **kwargs):
    return {group.suffix: group for group in translate(*args, **kwargs).query.groups}


def main_group(*args, **kwargs):
    return groups(*args, **kwargs)[""]


@pytest.mark.shows("S165")
def test_flavor_becomes_processors_memory_and_disk():
    flavor = Flavor(name="f", vcpus=2, memory_mb=512, root_gb=10, ephemeral_gb=5, swap=1025)
    assert main_group(flavor=flavor).resources == {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 17}


def test_zero_amounts_of_a_flavor_are_omitted():
    assert main_group(flavor=Flavor(name="f", vcpus=1)).resources == {"VCPU": 1}


@pytest.mark.parametrize(
    ("extra_specs", "resources"),
    [
        ({"resources:VCPU": "4"}, {"VCPU": 4, "MEMORY_MB": 512, "DISK_GB": 10}),
        ({"resources:VCPU": "0", "resources:CUSTOM_GOLD": "1"}, {"MEMORY_MB": 512, "DISK_GB": 10, "CUSTOM_GOLD": 1}),
        ({"resources:PCPU": "2"}, {"PCPU": 2, "MEMORY_MB": 512, "DISK_GB": 10}),
        ({"resources1:MEMORY_MB": "64"}, {"VCPU": 2, "DISK_GB": 10}),
        ({"resources:VCPU": " +1_0 "}, {"VCPU": 10, "MEMORY_MB": 512, "DISK_GB": 10}),
    ],
)
def test_resources_extra_spec_overrides_the_flavor_amount(extra_specs, resources):
    assert main_group(extra_specs).resources == resources


def test_suffix_starts_a_separate_group():
    result = groups(
        {"resources_GPU:VGPU": "1", "trait_GPU:CUSTOM_FAST": "required", "trait_GPU:CUSTOM_OLD": "forbidden"}
    )
    gpu = result["_GPU"]
    assert (gpu.resources, gpu.required, gpu.forbidden) == (
        {"VGPU": 1},
        (frozenset({"CUSTOM_FAST"}),),
        frozenset({"CUSTOM_OLD"}),
    )


@pytest.mark.parametrize(
    "extra_specs",
    [
        {"resources:VCPU": "many"},
        {"resources:VCPU": "-1"},
        {"resources:VCPU": "1.5"},
        {"resources:VCPU": "9" * 5000},
        {"resources:NO_SUCH_CLASS": "1"},
        {"trait:CUSTOM_FAST": "maybe"},
        {"group_policy": "sometimes"},
    ],
)
def test_invalid_extra_spec_is_ignored_with_a_warning(extra_specs):
    result = translate(extra_specs)
    assert result.query == translate().query
    assert len(result.warnings) == 1


def test_extra_specs_of_other_rules_cause_no_warning():
    assert translate({"hw:cpu_policy": "shared", "capabilities:arch": "x", "resources": "1"}).warnings == ()


def test_group_policy_comes_from_the_flavor():
    two = {"resources1:VGPU": "1", "resources2:VGPU": "1"}
    assert translate(two | {"group_policy": "isolate"}).query.group_policy == "isolate"
    result = translate(two)
    assert (result.query.group_policy, len(result.warnings)) == ("none", 1)


def test_an_image_may_require_traits():
    image = Image(
        properties={"traits_required": "CUSTOM_A, CUSTOM_B", "trait:CUSTOM_C": "required", "trait:CUSTOM_D": "x"}
    )
    assert main_group(image=image).required == tuple(frozenset({f"CUSTOM_{name}"}) for name in "ABC")


def test_a_trait_cannot_be_required_and_forbidden():
    with pytest.raises(BadRequest, match="CUSTOM_A"):
        translate({"trait:CUSTOM_A": "forbidden"}, image=Image(properties={"trait:CUSTOM_A": "required"}))


def test_request_groups_are_added_to_the_query():
    device = ResourceGroup(suffix="_port", resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1000})
    assert groups(groups=(device,))["_port"] == device


def test_request_group_without_suffix_is_merged_with_the_flavor():
    extra = ResourceGroup(resources={"VCPU": 8}, required=(frozenset({"CUSTOM_A", "CUSTOM_B"}),))
    result = main_group(groups=(extra,))
    assert result.resources == {"VCPU": 8, "MEMORY_MB": 512, "DISK_GB": 10}
    assert result.required == extra.required


def test_duplicate_suffix_or_empty_group_is_refused():
    one = ResourceGroup(suffix="1", resources={"VGPU": 1})
    with pytest.raises(BadRequest, match="suffix '1'"):
        translate(groups=(one, one))
    with pytest.raises(BadRequest, match="suffix '1'"):
        translate({"resources1:VGPU": "1"}, groups=(one,))
    with pytest.raises(BadRequest, match="is empty"):
        translate(groups=(ResourceGroup(suffix="2"),))


def test_request_without_resources_is_refused():
    with pytest.raises(BadRequest, match="at least one"):
        translate(flavor=Flavor(name="nothing"))


def test_zone_becomes_the_aggregates_with_its_name():
    assert main_group(availability_zone="east").member_of == (frozenset({EAST}),)
    assert main_group(availability_zone="far").member_of == (frozenset({WEST}),)
    assert main_group(availability_zone="east,west").member_of == (frozenset({EAST, WEST}),)


def test_default_zone_forbids_the_aggregates_of_other_zones():
    assert main_group(availability_zone="nova").forbidden_aggregates == frozenset({EAST, WEST})


def test_request_for_an_unknown_zone_is_refused():
    with pytest.raises(BadRequest, match="no availability zone north"):
        translate(availability_zone="north")
    assert len(translate(availability_zone="north,east").warnings) == 1


def test_destination_adds_its_aggregates():
    destination = Destination(aggregates=(frozenset({EAST}),), forbidden_aggregates=frozenset({WEST}))
    result = main_group(destination=destination)
    assert (result.member_of, result.forbidden_aggregates) == ((frozenset({EAST}),), frozenset({WEST}))


@pytest.mark.parametrize(
    ("request_", "tree"),
    [
        ({"force_hosts": ("HOST-2",)}, 2),
        ({"force_nodes": ("node-3",)}, 3),
        ({"destination": Destination(host="host-1", node="node-1"), "force_hosts": ("host-2",)}, 1),
        ({"force_hosts": ("host-1", "host-2")}, None),
    ],
)
def test_single_requested_host_limits_the_search_to_its_tree(request_, tree):
    assert main_group(**request_).in_tree == (None if tree is None else uuid_text(tree))


def test_two_requested_trees_are_refused():
    with pytest.raises(BadRequest, match="two trees"):
        translate(force_hosts=("host-1",), groups=(ResourceGroup(in_tree=uuid_text(2)),))


def test_groups_left_empty_are_removed():
    assert groups({"resources1:CUSTOM_GOLD": "0"}).keys() == {""}
    assert groups({"resources1:CUSTOM_GOLD": "0", "trait1:CUSTOM_A": "required"}).keys() == {"", "1"}


def test_suffix_has_at_most_64_characters():
    assert groups({f"resources{'x' * 64}:VGPU": "1"}).keys() == {"", "x" * 64}
    assert groups({f"resources{'x' * 65}:VGPU": "1"}).keys() == {""}


def test_boot_volume_needs_no_root_disk_on_the_host():
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, root_gb=10, ephemeral_gb=3, swap=1)
    assert main_group(flavor=flavor, is_bfv=True).resources["DISK_GB"] == 4


def test_root_traits_and_subtrees_come_from_the_request():
    device = ResourceGroup(suffix="a", resources={"VGPU": 1})
    root_traits = {"root_required": frozenset({"CUSTOM_A"}), "root_forbidden": frozenset({"CUSTOM_B"})}
    result = translate(groups=(device,), same_subtree=(frozenset({"", "a"}),), **root_traits).query
    assert result.root_required == {"CUSTOM_A"}
    assert result.root_forbidden == {"CUSTOM_B", "COMPUTE_STATUS_DISABLED"}
    assert result.same_subtree == (frozenset({"", "a"}),)
    with pytest.raises(BadRequest, match="both required and forbidden: CUSTOM_A"):
        translate(root_required=frozenset({"CUSTOM_A"}), root_forbidden=frozenset({"CUSTOM_A"}))


@pytest.mark.parametrize(
    ("request_", "limit"),
    [
        ({}, 1000),
        ({"force_hosts": ("host-1",)}, 1000),
        ({"force_hosts": ("host-1", "host-2")}, None),
        ({"hints": {"group": "g"}}, None),
        ({"hints": {"same_host": ["u"]}}, None),
        ({"hints": {"different_host": ["u"]}}, None),
        ({"hints": {"query": "x"}}, 1000),
    ],
)
def test_candidates_are_limited_unless_all_may_be_needed(request_, limit):
    assert translate(**request_).query.limit == limit


def test_candidates_are_not_limited_if_the_tree_of_a_named_host_cannot_be_required():
    only_a_device = {
        "resources:VCPU": "0",
        "resources:MEMORY_MB": "0",
        "resources:DISK_GB": "0",
        "resources1:VGPU": "1",
    }
    query = translate(only_a_device, force_hosts=("host-1",)).query
    assert [(group.suffix, group.in_tree) for group in query.groups if group.resources] == [("1", None)]
    assert query.limit is None


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"force_hosts": ("nobody",)}, "No such host - host: nobody node: None"),
        ({"force_nodes": ("NODE-3",)}, "No such host - host: None node: NODE-3"),
        ({"destination": Destination(host="host-1", node="node-2")}, "No such host - host: host-1 node: node-2"),
    ],
)
def test_unknown_host_refuses_the_request(request_, reason):
    refusal = translate(**request_).refusal
    assert (refusal.rule, refusal.reason) == ("requested_hosts", reason)


def test_rebuild_check_skips_prefilters():
    assert translate(hints={"_nova_check_type": ["rebuild"]}).effects == ()


@pytest.mark.shows("S165")
def test_the_query_string_is_sorted_and_of_version_1_36():
    port = ResourceGroup(
        suffix="p1",
        resources={"NET_BW_EGR_KILOBIT_PER_SEC": 10},
        required=(frozenset({"CUSTOM_X"}),),
        forbidden=frozenset({"CUSTOM_Y"}),
        member_of=(frozenset({"b", "a"}), frozenset({"c"})),
        forbidden_aggregates=frozenset({"e", "d"}),
        in_tree="u",
    )
    result = translate(
        {"resources1:VGPU": "1"}, groups=(port,), root_required=frozenset({"B", "A"}), same_subtree=(frozenset({"p1"}),)
    )
    assert query_string(result.query) == (
        "group_policy=none&in_treep1=u&limit=1000&member_ofp1=!in:d,e&member_ofp1=in:a,b&member_ofp1=in:c"
        "&requiredp1=CUSTOM_X,!CUSTOM_Y&resources=DISK_GB:10,MEMORY_MB:512,VCPU:2&resources1=VGPU:1"
        "&resourcesp1=NET_BW_EGR_KILOBIT_PER_SEC:10&root_required=A,B,!COMPUTE_STATUS_DISABLED&same_subtree=p1"
    )


def test_required_traits_are_unique_and_keep_their_order():
    draft = DraftGroup(ResourceGroup(required=(frozenset({"B", "C"}), frozenset({"A"}))))
    for trait in ("Z", "A", "Z"):
        draft.require(trait)
    draft.add(ResourceGroup(required=(frozenset({"Z"}), frozenset({"Y"}), frozenset({"C", "B"}))))
    assert draft.build("").required == tuple(map(frozenset, ("BC", "A", "Z", "Y")))
