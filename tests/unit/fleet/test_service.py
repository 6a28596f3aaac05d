import msgspec
import pytest

from roost.errors import BadRequest, NotFound
from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostFacts, HostSpec
from roost.model.provider import ProviderSpec
from tests.support.fleets.worlds import (
    aggregate,
    digest,
    group,
    hosts,
    merge_fleets,
    roost_with,
    small_request,
    uuid_named,
)


def spec(name, provider=None):
    return HostSpec(provider_uuid=uuid_named(provider or name), host=name, node=name)


def roost_with_child():
    """Return a Roost with host h0, whose tree has a child, and a root without a host."""
    roost = roost_with(hosts(1))
    roost.placement.create_providers(
        [
            ProviderSpec(uuid=uuid_named("child"), name="child", parent_uuid=uuid_named("h0")),
            ProviderSpec(uuid=uuid_named("bare"), name="bare"),
        ]
    )
    return roost


@pytest.mark.parametrize(
    ("specs", "error", "problem"),
    [
        ([spec("nobody")], NotFound, "no such provider"),
        ([spec("x", "child")], BadRequest, "not the root"),
        ([spec("x", "h0")], BadRequest, "has a host already"),
        ([spec("bare"), spec("y", "bare")], BadRequest, "has a host already"),
    ],
)
def test_host_must_be_the_only_one_on_a_root_provider(specs, error, problem):
    roost = roost_with_child()
    before = digest(roost.state)
    with pytest.raises(error, match=problem):
        roost.fleet.register_hosts(specs)
    assert digest(roost.state) == before


def test_host_can_be_registered_on_an_existing_root():
    roost = roost_with_child()
    roost.fleet.register_hosts([spec("bare")])
    assert roost.state.hosts.names == ["h0", "bare"]


@pytest.mark.parametrize("uuid", [uuid_named("a"), uuid_named("a").upper()])
def test_an_aggregate_is_created_once(uuid):
    roost = roost_with(aggregate("a"))
    with pytest.raises(BadRequest, match="is taken"):
        roost.fleet.create_aggregates([Aggregate(uuid=uuid)])
    with pytest.raises(BadRequest, match="is not a valid UUID"):
        roost.fleet.create_aggregates([Aggregate(uuid="garbage")])
    twice = Aggregate(uuid=uuid_named("b"))
    with pytest.raises(BadRequest, match="is taken"):
        roost.fleet.create_aggregates([twice, twice])


def test_unnamed_aggregate_can_be_named_later():
    roost = roost_with(aggregate("", zone="a"))
    unnamed = roost.state.aggregates.id_of(uuid_named(""))
    roost.fleet.create_aggregates([Aggregate(uuid=uuid_named(""), name="rack", metadata={"zone": "b"})])
    assert (roost.state.aggregate_names, roost.state.metadata) == ({unnamed: "rack"}, {unnamed: {"zone": "b"}})
    with pytest.raises(BadRequest, match="is taken"):
        roost.fleet.create_aggregates([Aggregate(uuid=uuid_named(""), name="row")])


@pytest.mark.parametrize("uuid", [uuid_named("g"), uuid_named("g").upper()])
def test_a_server_group_is_created_once_and_found_by_any_spelling(uuid):
    roost = roost_with(hosts(2), group("g", "anti-affinity"))
    with pytest.raises(BadRequest, match="is taken"):
        roost.fleet.create_groups([ServerGroup(uuid=uuid, policy="affinity")])
    with pytest.raises(BadRequest, match="is not a valid UUID"):
        roost.fleet.create_groups([ServerGroup(uuid="garbage", policy="affinity")])
    request = small_request()
    decisions = [roost.decide(type(request)(flavor=request.flavor, group=uuid)) for _ in range(2)]
    assert [each.picks[0].host for each in decisions] == ["h0", "h1"]


def test_a_document_is_stored_once():
    roost = roost_with()
    one = roost.fleet.document("flavor", b"body")
    assert roost.fleet.document("flavor", b"body") == one
    assert len({one, roost.fleet.document("image", b"body"), roost.fleet.document("flavor", b"other")}) == 3
    roost.placement.flush()
    assert len(roost.state.documents) == 3


def test_fleet_with_an_unknown_provider_at_its_end_changes_nothing():
    roost = roost_with()
    with pytest.raises(NotFound, match="no such provider"):
        roost.install(merge_fleets(hosts(2), type(hosts(0))(hosts=[spec("nobody")])))
    assert len(roost.state.providers) == 0


@pytest.mark.parametrize(
    "facts",
    [
        HostFacts(vcpus_total=1.5),
        HostFacts(num_io_ops=10**30),
        HostFacts(failed_builds=float("nan")),
        HostFacts(rack="\ud800"),
        HostFacts(stats={"a": 1}),
    ],
)
def test_facts_that_cannot_be_stored_are_refused(facts):
    roost = roost_with_child()
    with pytest.raises(BadRequest, match="host bare: its facts cannot be stored"):
        roost.fleet.register_hosts([msgspec.structs.replace(spec("bare"), facts=facts)])
    assert roost.state.hosts.names == ["h0"]
