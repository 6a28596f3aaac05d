"""Nova's compute nodes against a Placement: each difference is one finding."""

import pytest
from msgspec.structs import replace

from roost.model.host import HostFacts
from roost.model.names import DISABLED_TRAIT, SHARING_TRAIT
from roost.nova.check.check_placement import check_placement
from roost.nova.check.placement_picture import OWNER_TRAIT, PlacementPicture
from roost.nova.database.nova_fleet import ComputeNode, FleetChanges, NovaAggregate

HOSTS = ("cmp1", "cmp2", "cmp3")
PICTURE = PlacementPicture(
    names={f"uuid-{host}": host for host in HOSTS},
    members={"fast": frozenset({"uuid-cmp1"})},
    traits={OWNER_TRAIT: frozenset(f"uuid-{host}" for host in HOSTS)},
)


def node(host, **facts):
    return ComputeNode(
        uuid=f"uuid-{host}", host=host, node=host, cell="c", facts=HostFacts(**facts), is_mapped=True, is_ready=True
    )


def fleet(*nodes, hosts=("cmp1",), **more):
    aggregate = NovaAggregate(id=1, uuid="fast", name="fast-hosts", hosts=hosts)
    return FleetChanges(
        computes=nodes or tuple(map(node, HOSTS)), aggregates=(aggregate,), service_version_min=74, **more
    )


def lines(fleet, picture=PICTURE):
    return [(each.level, each.found) for each in check_placement(fleet, picture, subject="Placement")]


GOOD = [
    ("ok", "Placement is readable: 3 of 3 compute nodes have their provider"),
    ("ok", "1 aggregate with the same members in Nova and Placement"),
]


def test_equal_sides_have_no_difference():
    assert lines(fleet()) == GOOD


def test_empty_placement_is_an_error():
    empty = PlacementPicture(names={}, members={}, traits={})
    assert lines(fleet(), empty) == [("error", "Placement is empty")]


def test_node_without_provider():
    found = lines(fleet(*map(node, (*HOSTS, "cmp4"))))
    assert found[0] == ("ok", "Placement is readable: 3 of 4 compute nodes have their provider")
    assert found[1] == ("warning", "1 compute node without a provider: cmp4")


def test_placement_of_another_cloud_is_an_error():
    assert ("error", "1 compute node without a provider: other") in lines(fleet(node("other")))


def test_provider_without_node_unless_it_shares():
    picture = replace(PICTURE, names={**PICTURE.names, "uuid-old": "old", "uuid-nfs": "nfs"})
    picture = replace(picture, traits={**picture.traits, SHARING_TRAIT: frozenset({"uuid-nfs"})})
    assert ("warning", "1 root provider without a compute node: old") in lines(fleet(), picture)
    assert lines(fleet(silent_cells={"d": "gone"}), picture) == GOOD  # It may be in the silent cell.


def test_aggregate_with_other_hosts():
    assert lines(fleet(hosts=("cmp2", "unknown")))[1] == (
        "warning",
        "aggregate fast-hosts: Nova has also cmp2; Placement has also cmp1",
    )


def test_many_different_aggregates_are_summarized():
    aggregates = tuple(NovaAggregate(id=at, uuid=f"a{at}", name=f"a{at}", hosts=("cmp1",)) for at in range(12))
    found = lines(replace(fleet(), aggregates=aggregates))
    assert len(found) == 12
    assert found[-1] == ("warning", "2 more aggregates with different members")


@pytest.mark.parametrize(
    ("is_disabled", "marked", "problem"),
    [
        (True, (), "1 compute node disabled without the trait COMPUTE_STATUS_DISABLED: cmp1"),
        (False, ("uuid-cmp1",), "1 compute node with the trait COMPUTE_STATUS_DISABLED but not disabled: cmp1"),
        (True, ("uuid-cmp1",), None),
    ],
)
def test_trait_of_disabled_services(is_disabled, marked, problem):
    picture = replace(PICTURE, traits={**PICTURE.traits, DISABLED_TRAIT: frozenset(marked)})
    found = lines(fleet(node("cmp1", is_disabled=is_disabled), node("cmp2"), node("cmp3")), picture)
    assert found == GOOD + ([] if problem is None else [("warning", problem)])


def test_trait_of_owner_matters_from_a_version_on():
    picture = replace(PICTURE, traits={OWNER_TRAIT: frozenset({"uuid-cmp1"})})
    assert lines(fleet(), picture)[-1] == ("warning", "2 compute nodes without the trait OWNER_NOVA: cmp2, cmp3")
    assert lines(replace(fleet(), service_version_min=72), picture) == GOOD
