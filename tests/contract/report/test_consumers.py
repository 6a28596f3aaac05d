"""Allocations of consumers: claim, change, move, delete and count."""

import pytest

from roost.errors import BadRequest, Conflict, NotFound, PlacementGone
from roost.model.placement.placement_api import Answer
from tests.support.agents.report_clients import PROJECT, USER

ONE, TWO = {"VCPU": 1}, {"VCPU": 2}


@pytest.fixture
def hosts(world):
    """Return a client; ``a``, its child ``cell``, and ``b`` have 8 VCPU each."""
    world.provider("a", VCPU=8)
    world.provider("cell", parent="a", VCPU=8)
    world.provider("b", VCPU=8)
    return world.client()


def claim(world, client, consumer, *, generation=None, **amounts):
    """Claim amounts: ``provider={class: amount}``."""
    request = {"allocations": world.payload(**amounts)["allocations"]}
    return client.claim_resources(
        world.u(consumer), request, project_id=PROJECT, user_id=USER, consumer_generation=generation
    )


def rival_change(world, consumer="i", **amounts):
    """Return a function that changes the allocations of a consumer, as another client would."""

    def act():
        found = world.ask("GET", f"/allocations/{world.u(consumer)}")
        world.hold(consumer, found.get("consumer_generation"), **amounts)

    return act


def fail_with_provider_race(world, method, part, *, times=1, text="race"):
    """Make Placement respond with a concurrent update."""
    body = {"errors": [{"detail": text, "code": "placement.concurrent_update"}]}
    for _ in range(times):
        world.network.fault(method, part, lambda _: Answer(409, body))


# --- claim ---


def test_claim_creates_a_consumer(world, hosts):
    assert claim(world, hosts, "i", a=ONE)
    assert world.held("i") == world.amounts(a=ONE)
    assert hosts.get_allocs_for_consumer(world.u("i"))["consumer_generation"] == 1


def test_candidate_is_claimed_as_returned(world, hosts):
    found = hosts.get_allocation_candidates(f"resources=VCPU:3&in_tree={world.u('b')}")
    assert (found.version, len(found.allocation_requests)) == ("1.36", 1)
    assert found.provider_summaries[world.u("b")]["resources"]["VCPU"] == {"capacity": 8, "used": 0}
    assert hosts.claim_resources(
        world.u("i"),
        found.allocation_requests[0],
        project_id=PROJECT,
        user_id=USER,
        allocation_request_version=found.version,
    )
    assert world.held("i") == world.amounts(b={"VCPU": 3})
    assert world.network.asked[-1].body["mappings"] == {"": [world.u("b")]}


def test_claim_that_does_not_fit_leaves_no_consumer(world, hosts, capfd):
    assert not claim(world, hosts, "i", a={"VCPU": 9})
    assert '"event":"claim_refused"' in capfd.readouterr().err
    assert world.held("i") == {}
    assert world.pauses == []
    assert claim(world, hosts, "i", a=ONE)


def test_claim_of_an_existing_consumer_holds_both_hosts(world, hosts):
    world.hold("i", a=TWO)
    assert claim(world, hosts, "i", b=TWO)
    assert world.held("i") == world.amounts(a=TWO, b=TWO)


def test_claim_takes_nothing_more_from_providers_already_held(world, hosts):
    world.hold("i", a=TWO)
    assert claim(world, hosts, "i", a=ONE, b=TWO)
    assert world.held("i") == world.amounts(a=TWO, b=TWO)


def test_claim_with_a_stale_generation_is_a_conflict(world, hosts):
    world.hold("i", a=TWO)
    assert claim(world, hosts, "i", b=TWO, generation=1)
    with pytest.raises(Conflict, match="consumer generation conflict"):
        claim(world, hosts, "i", cell=TWO, generation=1)
    assert world.held("i") == world.amounts(a=TWO, b=TWO)


def test_consumer_changed_during_its_claim_is_a_conflict(world, hosts):
    world.network.first("PUT", "/allocations/", rival_change(world, a=ONE))
    with pytest.raises(Conflict, match="consumer generation conflict"):
        claim(world, hosts, "i", b=TWO)
    assert world.held("i") == world.amounts(a=ONE)


def test_claim_is_retried_after_a_provider_race(world, hosts):
    fail_with_provider_race(world, "PUT", "/allocations/", times=3)
    assert claim(world, hosts, "i", b=TWO)
    assert (world.held("i"), world.pauses) == (world.amounts(b=TWO), [2.0, 4.0, 6.0])


def test_claim_fails_after_four_lost_races(world, hosts):
    fail_with_provider_race(world, "PUT", "/allocations/", times=4)
    assert not claim(world, hosts, "i", b=TWO)
    fail_with_provider_race(world, "PUT", "/allocations/", times=4)
    assert not hosts.put_allocations(world.u("i"), world.payload(b=TWO))
    assert world.held("i") == {}


def test_claims_of_one_provider_do_not_conflict(world, hosts):
    for number in range(3):
        world.network.first("PUT", "/allocations/", rival_change(world, f"other {number}", a=ONE))
        assert claim(world, hosts, f"i{number}", a=ONE)
    assert world.pauses == []


@pytest.mark.parametrize("act", ["claim", "put", "add", "remove"])
def test_write_with_a_lost_reply_is_applied_once(world, hosts, act):
    world.hold("i", a=TWO)
    world.network.lose("PUT", "/allocations/", is_done=True)
    if act == "claim":
        assert claim(world, hosts, "i", b=ONE)
        expected = world.amounts(a=TWO, b=ONE)
    elif act == "put":
        assert hosts.put_allocations(world.u("i"), world.payload(1, b=ONE))
        expected = world.amounts(b=ONE)
    elif act == "add":
        hosts.add_resources_to_instance_allocation(world.u("i"), world.amounts(a=ONE))
        expected = world.amounts(a={"VCPU": 3})
    else:
        hosts.remove_resources_from_instance_allocation(world.u("i"), world.amounts(a=ONE))
        expected = world.amounts(a=ONE)
    assert world.held("i") == expected


# --- put ---


def test_put_replaces_all_allocations(world, hosts):
    assert hosts.put_allocations(world.u("i"), world.payload(a=TWO))
    assert hosts.put_allocations(world.u("i"), world.payload(1, b=ONE))
    assert world.held("i") == world.amounts(b=ONE)


def test_put_with_a_stale_generation_is_a_conflict(world, hosts):
    world.hold("i", a=TWO)
    with pytest.raises(Conflict, match="consumer generation conflict"):
        hosts.put_allocations(world.u("i"), world.payload(b=ONE))


def test_put_that_does_not_fit_or_is_invalid_returns_false(world, hosts):
    assert not hosts.put_allocations(world.u("i"), world.payload(a={"VCPU": 9}))
    assert not hosts.put_allocations(world.u("i"), world.payload(a={"NONSENSE": 1}))
    assert not hosts.put_allocations(world.u("i"), world.payload(nobody=ONE))


def test_overcommitted_allocation_can_be_put_again_or_shrink(world, hosts):
    world.hold("i", a={"VCPU": 6})
    world.offer("a", VCPU=4)
    assert hosts.put_allocations(world.u("i"), world.payload(1, a={"VCPU": 5}))
    assert not hosts.put_allocations(world.u("i"), world.payload(2, a={"VCPU": 6}))


def test_put_raises_when_placement_is_away(world, hosts):
    world.network.lose("PUT", "/allocations/", is_done=False, times=4)
    with pytest.raises(PlacementGone):
        hosts.put_allocations(world.u("i"), world.payload(a=ONE))


# --- change ---


def test_consumer_adds_and_removes_resources(world, hosts):
    world.hold("i", a=TWO)
    hosts.add_resources_to_instance_allocation(world.u("i"), world.amounts(a=ONE, b=TWO))
    assert world.held("i") == world.amounts(a={"VCPU": 3}, b=TWO)
    hosts.remove_resources_from_instance_allocation(world.u("i"), world.amounts(a=ONE, b=TWO))
    assert world.held("i") == world.amounts(a=TWO)


@pytest.mark.parametrize("less", [{"a": {"VCPU": 3}}, {"b": ONE}, {"a": {"MEMORY_MB": 1}}])
def test_removing_more_than_is_held_is_refused(world, hosts, less):
    world.hold("i", a=TWO)
    with pytest.raises(BadRequest, match="cannot be released"):
        hosts.remove_resources_from_instance_allocation(world.u("i"), world.amounts(**less))
    assert world.held("i") == world.amounts(a=TWO)


def test_consumer_without_allocations_cannot_change_them(world, hosts):
    for change in (hosts.add_resources_to_instance_allocation, hosts.remove_resources_from_instance_allocation):
        with pytest.raises(NotFound):
            change(world.u("i"), world.amounts(a=ONE))


def test_concurrent_change_is_retried_on_the_new_allocations(world, hosts):
    world.hold("i", a=ONE)
    world.network.first("PUT", "/allocations/", rival_change(world, a=TWO))
    hosts.add_resources_to_instance_allocation(world.u("i"), world.amounts(a=ONE))
    assert (world.held("i"), world.pauses) == (world.amounts(a={"VCPU": 3}), [2.0])


def test_change_that_loses_every_race_is_a_conflict(world, hosts):
    world.hold("i", a=ONE)
    for _ in range(4):
        world.network.first("PUT", "/allocations/", rival_change(world, a=ONE))
    with pytest.raises(Conflict, match="changed during each attempt"):
        hosts.add_resources_to_instance_allocation(world.u("i"), world.amounts(a=ONE))


def test_adding_more_than_fits_is_refused(world, hosts):
    world.hold("i", a=ONE)
    with pytest.raises(Conflict, match="Unable to allocate inventory"):
        hosts.add_resources_to_instance_allocation(world.u("i"), world.amounts(a={"VCPU": 8}))
    assert world.held("i") == world.amounts(a=ONE)


def test_allocations_of_a_provider_tree_are_removed(world, hosts):
    world.hold("i", a=ONE, cell=ONE, b=TWO)
    assert hosts.remove_provider_tree_from_instance_allocation(world.u("i"), world.u("a"))
    assert world.held("i") == world.amounts(b=TWO)
    assert not hosts.remove_provider_tree_from_instance_allocation(world.u("i"), world.u("a"))
    assert hosts.remove_provider_tree_from_instance_allocation(world.u("i"), world.u("b"))
    assert world.held("i") == {}


# --- move ---


def test_migration_takes_over_the_allocations_of_the_instance(world, hosts):
    world.hold("i", a=TWO, cell=ONE)
    assert hosts.move_allocations(world.u("i"), world.u("migration"))
    assert (world.held("i"), world.held("migration")) == ({}, world.amounts(a=TWO, cell=ONE))
    # The move is done already.
    assert hosts.move_allocations(world.u("i"), world.u("migration"))
    assert not hosts.move_allocations(world.u("nobody"), world.u("nothing"))


def test_move_replaces_the_allocations_of_the_target(world, hosts):
    world.hold("i", a=TWO)
    world.hold("migration", b=ONE)
    assert hosts.move_allocations(world.u("migration"), world.u("i"))
    assert (world.held("i"), world.held("migration")) == (world.amounts(b=ONE), {})


def test_move_succeeds_on_an_overcommitted_host(world, hosts):
    world.hold("i", a={"VCPU": 8})
    assert hosts.move_allocations(world.u("i"), world.u("migration"))
    world.offer("a", VCPU=4)
    assert hosts.move_allocations(world.u("migration"), world.u("i"))
    assert world.held("i") == world.amounts(a={"VCPU": 8})


def test_consumer_changed_during_its_move_is_a_conflict(world, hosts):
    world.hold("i", a=TWO)
    world.network.first("POST", "/allocations", rival_change(world, a=ONE))
    with pytest.raises(Conflict, match="consumer generation conflict"):
        hosts.move_allocations(world.u("i"), world.u("migration"))
    assert (world.held("i"), world.held("migration")) == (world.amounts(a=ONE), {})


def test_move_is_retried_after_a_provider_race(world, hosts):
    world.hold("i", a=TWO)
    fail_with_provider_race(world, "POST", "/allocations", times=2)
    assert hosts.move_allocations(world.u("i"), world.u("migration"))
    assert world.pauses == [2.0, 4.0]


def test_move_with_a_lost_reply_is_done(world, hosts):
    world.hold("i", a=TWO)
    world.network.lose("POST", "/allocations", is_done=True)
    assert hosts.move_allocations(world.u("i"), world.u("migration"))
    assert (world.held("i"), world.held("migration")) == ({}, world.amounts(a=TWO))


def test_lost_move_request_followed_by_a_change_is_a_conflict(world, hosts):
    world.hold("i", a=TWO)
    world.network.lose("POST", "/allocations", is_done=False)
    world.network.first("POST", "/allocations", rival_change(world, a=ONE))
    with pytest.raises(Conflict, match="consumer generation conflict"):
        hosts.move_allocations(world.u("i"), world.u("migration"))
    assert (world.held("i"), world.held("migration")) == (world.amounts(a=ONE), {})


# --- delete ---


@pytest.mark.parametrize("force", [False, True])
def test_delete_reports_whether_anything_was_held(world, hosts, force):
    world.hold("i", a=TWO, b=ONE)
    assert hosts.delete_allocation_for_instance(world.u("i"), force=force)
    assert world.held("i") == {}
    assert not hosts.delete_allocation_for_instance(world.u("i"), force=force)
    # The consumer record is deleted too.
    assert claim(world, hosts, "i", a=ONE)


def test_delete_of_a_changed_consumer_needs_force(world, hosts):
    world.hold("i", a=TWO)
    world.network.first("PUT", "/allocations/", rival_change(world, a=ONE))
    with pytest.raises(Conflict):
        hosts.delete_allocation_for_instance(world.u("i"))
    assert world.held("i") == world.amounts(a=ONE)
    assert hosts.delete_allocation_for_instance(world.u("i"), force=True)


@pytest.mark.parametrize("force", [False, True])
def test_delete_with_a_lost_reply_reports_success(world, hosts, force):
    world.hold("i", a=TWO)
    world.network.lose("DELETE" if force else "PUT", "/allocations/", is_done=True)
    assert hosts.delete_allocation_for_instance(world.u("i"), force=force)


# --- read and count ---


def test_allocations_are_read_by_consumer_and_by_provider(world, hosts):
    world.hold("i", a=TWO)
    assert hosts.get_allocations_for_consumer(world.u("i"))[world.u("a")]["resources"] == TWO
    assert hosts.get_allocations_for_consumer(world.u("nobody")) == {}
    assert hosts.get_allocs_for_consumer(world.u("nobody")) == {"allocations": {}}
    found = hosts.get_allocations_for_resource_provider(world.u("a"))
    assert found == {world.u("i"): {"resources": TWO, "consumer_generation": 1}}
    with pytest.raises(NotFound):
        hosts.get_allocations_for_resource_provider(world.u("nobody"))


def test_reads_return_none_and_log_once_when_placement_is_away(world, hosts, capfd):
    world.network.lose("GET", "/allocation", is_done=False, times=8)
    assert hosts.get_allocations_for_consumer(world.u("i")) is None
    assert hosts.get_allocation_candidates("resources=VCPU:1") == (None, None, None)
    assert capfd.readouterr().err.count('"event":"placement_away"') == 1
    assert hosts.get_allocations_for_consumer(world.u("i")) == {}


def test_invalid_candidate_query_returns_none(hosts):
    assert hosts.get_allocation_candidates("resources=NONSENSE:1") == (None, None, None)


def test_usages_of_a_project_and_a_user_are_counted(world, hosts):
    world.offer("a", VCPU=8, MEMORY_MB=1000, DISK_GB=5)
    world.offer("b", PCPU=8)
    project = world.n("project")
    for consumer, user, amounts in (
        ("i", "alice & co", {"a": {"VCPU": 2, "MEMORY_MB": 300, "DISK_GB": 1}, "b": {"PCPU": 3}}),
        ("j", "bob", {"a": {"VCPU": 1, "MEMORY_MB": 100}}),
    ):
        body = {**world.payload(**amounts), "project_id": project, "user_id": user}
        world.ask("PUT", f"/allocations/{world.u(consumer)}", body)
    assert hosts.get_usages_counts_for_quota(project) == {"project": {"cores": 6, "ram": 400}}
    assert hosts.get_usages_counts_for_quota(project, "alice & co") == {
        "project": {"cores": 6, "ram": 400},
        "user": {"cores": 5, "ram": 300},
    }
    assert hosts.get_usages_counts_for_limits(project) == {"VCPU": 3, "PCPU": 3, "MEMORY_MB": 400, "DISK_GB": 1}
    assert hosts.get_usages_counts_for_quota(world.n("none")) == {"project": {"cores": 0, "ram": 0}}
