"""What consumers hold: claimed, changed, moved, given back, and counted."""

import pytest

from roost.errors import BadRequest, Conflict, NotFound, PlacementGone
from roost.model.placement.placement_api import Answer
from tests.support.agents.report_clients import PROJECT, USER

ONE, TWO = {"VCPU": 1}, {"VCPU": 2}


@pytest.fixture
def hosts(world):
    """Give a client; ``a``, with ``cell`` below, and ``b`` offer 8 VCPU each."""
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


def changing(world, consumer="i", **amounts):
    """Give an act that lets somebody else change what a consumer holds."""

    def act():
        found = world.ask("GET", f"/allocations/{world.u(consumer)}")
        world.hold(consumer, found.get("consumer_generation"), **amounts)

    return act


def raced(world, method, part, *, times=1, text="race"):
    """Let Placement answer that it lost a race of its own."""
    body = {"errors": [{"detail": text, "code": "placement.concurrent_update"}]}
    for _ in range(times):
        world.network.fault(method, part, lambda _: Answer(409, body))


# --- claiming ---


def test_a_new_consumer_takes_what_it_is_given(world, hosts):
    assert claim(world, hosts, "i", a=ONE)
    assert world.held("i") == world.amounts(a=ONE)
    assert hosts.get_allocs_for_consumer(world.u("i"))["consumer_generation"] == 1


def test_a_candidate_is_claimed_as_it_was_answered(world, hosts):
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


def test_what_does_not_fit_is_not_claimed_and_leaves_no_consumer(world, hosts, capfd):
    assert not claim(world, hosts, "i", a={"VCPU": 9})
    assert '"event":"claim_refused"' in capfd.readouterr().err
    assert world.held("i") == {}
    assert world.pauses == []
    assert claim(world, hosts, "i", a=ONE)


def test_who_holds_something_is_moved_and_holds_both_ends(world, hosts):
    world.hold("i", a=TWO)
    assert claim(world, hosts, "i", b=TWO)
    assert world.held("i") == world.amounts(a=TWO, b=TWO)


def test_of_providers_that_are_held_already_nothing_more_is_taken(world, hosts):
    world.hold("i", a=TWO)
    assert claim(world, hosts, "i", a=ONE, b=TWO)
    assert world.held("i") == world.amounts(a=TWO, b=TWO)


def test_who_is_forced_brings_its_generation(world, hosts):
    world.hold("i", a=TWO)
    assert claim(world, hosts, "i", b=TWO, generation=1)
    with pytest.raises(Conflict, match="consumer generation conflict"):
        claim(world, hosts, "i", cell=TWO, generation=1)
    assert world.held("i") == world.amounts(a=TWO, b=TWO)


def test_a_consumer_that_changes_while_it_claims_is_a_conflict(world, hosts):
    world.network.first("PUT", "/allocations/", changing(world, a=ONE))
    with pytest.raises(Conflict, match="consumer generation conflict"):
        claim(world, hosts, "i", b=TWO)
    assert world.held("i") == world.amounts(a=ONE)


def test_a_race_of_providers_is_tried_again_after_a_pause(world, hosts):
    raced(world, "PUT", "/allocations/", times=3)
    assert claim(world, hosts, "i", b=TWO)
    assert (world.held("i"), world.pauses) == (world.amounts(b=TWO), [2.0, 4.0, 6.0])


def test_after_four_lost_races_it_is_not_claimed(world, hosts):
    raced(world, "PUT", "/allocations/", times=4)
    assert not claim(world, hosts, "i", b=TWO)
    raced(world, "PUT", "/allocations/", times=4)
    assert not hosts.put_allocations(world.u("i"), world.payload(b=TWO))
    assert world.held("i") == {}


def test_claims_of_one_provider_do_not_conflict(world, hosts):
    for number in range(3):
        world.network.first("PUT", "/allocations/", changing(world, f"other {number}", a=ONE))
        assert claim(world, hosts, f"i{number}", a=ONE)
    assert world.pauses == []


@pytest.mark.parametrize("act", ["claim", "put", "add", "remove"])
def test_what_was_carried_out_without_an_answer_is_done_once(world, hosts, act):
    world.hold("i", a=TWO)
    world.network.lose("PUT", "/allocations/", is_done=True)
    if act == "claim":
        assert claim(world, hosts, "i", b=ONE)
        wanted = world.amounts(a=TWO, b=ONE)
    elif act == "put":
        assert hosts.put_allocations(world.u("i"), world.payload(1, b=ONE))
        wanted = world.amounts(b=ONE)
    elif act == "add":
        hosts.add_resources_to_instance_allocation(world.u("i"), world.amounts(a=ONE))
        wanted = world.amounts(a={"VCPU": 3})
    else:
        hosts.remove_resources_from_instance_allocation(world.u("i"), world.amounts(a=ONE))
        wanted = world.amounts(a=ONE)
    assert world.held("i") == wanted


# --- putting ---


def test_putting_replaces_all(world, hosts):
    assert hosts.put_allocations(world.u("i"), world.payload(a=TWO))
    assert hosts.put_allocations(world.u("i"), world.payload(1, b=ONE))
    assert world.held("i") == world.amounts(b=ONE)


def test_putting_on_another_generation_is_a_conflict(world, hosts):
    world.hold("i", a=TWO)
    with pytest.raises(Conflict, match="consumer generation conflict"):
        hosts.put_allocations(world.u("i"), world.payload(b=ONE))


def test_putting_what_does_not_fit_or_cannot_be_meant_is_not_done(world, hosts):
    assert not hosts.put_allocations(world.u("i"), world.payload(a={"VCPU": 9}))
    assert not hosts.put_allocations(world.u("i"), world.payload(a={"NONSENSE": 1}))
    assert not hosts.put_allocations(world.u("i"), world.payload(nobody=ONE))


def test_an_overage_may_be_put_again_and_shrink(world, hosts):
    world.hold("i", a={"VCPU": 6})
    world.offer("a", VCPU=4)
    assert hosts.put_allocations(world.u("i"), world.payload(1, a={"VCPU": 5}))
    assert not hosts.put_allocations(world.u("i"), world.payload(2, a={"VCPU": 6}))


def test_a_placement_that_is_away_is_told(world, hosts):
    world.network.lose("PUT", "/allocations/", is_done=False, times=4)
    with pytest.raises(PlacementGone):
        hosts.put_allocations(world.u("i"), world.payload(a=ONE))


# --- changing ---


def test_a_consumer_takes_more_and_gives_back_a_part(world, hosts):
    world.hold("i", a=TWO)
    hosts.add_resources_to_instance_allocation(world.u("i"), world.amounts(a=ONE, b=TWO))
    assert world.held("i") == world.amounts(a={"VCPU": 3}, b=TWO)
    hosts.remove_resources_from_instance_allocation(world.u("i"), world.amounts(a=ONE, b=TWO))
    assert world.held("i") == world.amounts(a=TWO)


@pytest.mark.parametrize("less", [{"a": {"VCPU": 3}}, {"b": ONE}, {"a": {"MEMORY_MB": 1}}])
def test_more_than_is_held_cannot_be_given_back(world, hosts, less):
    world.hold("i", a=TWO)
    with pytest.raises(BadRequest, match="cannot be given back"):
        hosts.remove_resources_from_instance_allocation(world.u("i"), world.amounts(**less))
    assert world.held("i") == world.amounts(a=TWO)


def test_who_holds_nothing_can_neither_take_more_nor_give_back(world, hosts):
    for change in (hosts.add_resources_to_instance_allocation, hosts.remove_resources_from_instance_allocation):
        with pytest.raises(NotFound):
            change(world.u("i"), world.amounts(a=ONE))


def test_a_change_that_somebody_comes_before_is_made_of_what_is_held_then(world, hosts):
    world.hold("i", a=ONE)
    world.network.first("PUT", "/allocations/", changing(world, a=TWO))
    hosts.add_resources_to_instance_allocation(world.u("i"), world.amounts(a=ONE))
    assert (world.held("i"), world.pauses) == (world.amounts(a={"VCPU": 3}), [2.0])


def test_a_change_that_loses_every_race_says_so(world, hosts):
    world.hold("i", a=ONE)
    for _ in range(4):
        world.network.first("PUT", "/allocations/", changing(world, a=ONE))
    with pytest.raises(Conflict, match="change all the time"):
        hosts.add_resources_to_instance_allocation(world.u("i"), world.amounts(a=ONE))


def test_more_than_fits_is_refused(world, hosts):
    world.hold("i", a=ONE)
    with pytest.raises(Conflict, match="Unable to allocate inventory"):
        hosts.add_resources_to_instance_allocation(world.u("i"), world.amounts(a={"VCPU": 8}))
    assert world.held("i") == world.amounts(a=ONE)


def test_all_that_is_held_in_a_tree_is_given_back(world, hosts):
    world.hold("i", a=ONE, cell=ONE, b=TWO)
    assert hosts.remove_provider_tree_from_instance_allocation(world.u("i"), world.u("a"))
    assert world.held("i") == world.amounts(b=TWO)
    assert not hosts.remove_provider_tree_from_instance_allocation(world.u("i"), world.u("a"))
    assert hosts.remove_provider_tree_from_instance_allocation(world.u("i"), world.u("b"))
    assert world.held("i") == {}


# --- moving ---


def test_a_migration_holds_what_the_instance_held(world, hosts):
    world.hold("i", a=TWO, cell=ONE)
    assert hosts.move_allocations(world.u("i"), world.u("migration"))
    assert (world.held("i"), world.held("migration")) == ({}, world.amounts(a=TWO, cell=ONE))
    # Done before.
    assert hosts.move_allocations(world.u("i"), world.u("migration"))
    assert not hosts.move_allocations(world.u("nobody"), world.u("nothing"))


def test_what_moves_replaces_what_the_target_holds(world, hosts):
    world.hold("i", a=TWO)
    world.hold("migration", b=ONE)
    assert hosts.move_allocations(world.u("migration"), world.u("i"))
    assert (world.held("i"), world.held("migration")) == (world.amounts(b=ONE), {})


def test_a_full_host_is_no_reason_not_to_move(world, hosts):
    world.hold("i", a={"VCPU": 8})
    assert hosts.move_allocations(world.u("i"), world.u("migration"))
    world.offer("a", VCPU=4)
    assert hosts.move_allocations(world.u("migration"), world.u("i"))
    assert world.held("i") == world.amounts(a={"VCPU": 8})


def test_a_consumer_that_changes_while_it_moves_is_a_conflict(world, hosts):
    world.hold("i", a=TWO)
    world.network.first("POST", "/allocations", changing(world, a=ONE))
    with pytest.raises(Conflict, match="consumer generation conflict"):
        hosts.move_allocations(world.u("i"), world.u("migration"))
    assert (world.held("i"), world.held("migration")) == (world.amounts(a=ONE), {})


def test_a_move_that_loses_a_race_of_providers_is_tried_again(world, hosts):
    world.hold("i", a=TWO)
    raced(world, "POST", "/allocations", times=2)
    assert hosts.move_allocations(world.u("i"), world.u("migration"))
    assert world.pauses == [2.0, 4.0]


def test_a_move_that_was_carried_out_without_an_answer_is_done(world, hosts):
    world.hold("i", a=TWO)
    world.network.lose("POST", "/allocations", is_done=True)
    assert hosts.move_allocations(world.u("i"), world.u("migration"))
    assert (world.held("i"), world.held("migration")) == ({}, world.amounts(a=TWO))


def test_a_move_that_did_not_arrive_is_not_done_if_somebody_is_faster_then(world, hosts):
    world.hold("i", a=TWO)
    world.network.lose("POST", "/allocations", is_done=False)
    world.network.first("POST", "/allocations", changing(world, a=ONE))
    with pytest.raises(Conflict, match="consumer generation conflict"):
        hosts.move_allocations(world.u("i"), world.u("migration"))
    assert (world.held("i"), world.held("migration")) == (world.amounts(a=ONE), {})


# --- giving back ---


@pytest.mark.parametrize("force", [False, True])
def test_giving_back_says_whether_there_was_anything(world, hosts, force):
    world.hold("i", a=TWO, b=ONE)
    assert hosts.delete_allocation_for_instance(world.u("i"), force=force)
    assert world.held("i") == {}
    assert not hosts.delete_allocation_for_instance(world.u("i"), force=force)
    # And nothing of the consumer is left.
    assert claim(world, hosts, "i", a=ONE)


def test_who_changes_meanwhile_gives_nothing_back_unless_forced(world, hosts):
    world.hold("i", a=TWO)
    world.network.first("PUT", "/allocations/", changing(world, a=ONE))
    with pytest.raises(Conflict):
        hosts.delete_allocation_for_instance(world.u("i"))
    assert world.held("i") == world.amounts(a=ONE)
    assert hosts.delete_allocation_for_instance(world.u("i"), force=True)


@pytest.mark.parametrize("force", [False, True])
def test_what_was_given_back_without_an_answer_was_something(world, hosts, force):
    world.hold("i", a=TWO)
    world.network.lose("DELETE" if force else "PUT", "/allocations/", is_done=True)
    assert hosts.delete_allocation_for_instance(world.u("i"), force=force)


# --- reading and counting ---


def test_what_is_held_is_read_by_consumer_and_by_provider(world, hosts):
    world.hold("i", a=TWO)
    assert hosts.get_allocations_for_consumer(world.u("i"))[world.u("a")]["resources"] == TWO
    assert hosts.get_allocations_for_consumer(world.u("nobody")) == {}
    assert hosts.get_allocs_for_consumer(world.u("nobody")) == {"allocations": {}}
    found = hosts.get_allocations_for_resource_provider(world.u("a"))
    assert found == {world.u("i"): {"resources": TWO, "consumer_generation": 1}}
    with pytest.raises(NotFound):
        hosts.get_allocations_for_resource_provider(world.u("nobody"))


def test_where_placement_is_away_some_questions_have_no_answer_and_the_log_says_so_once(world, hosts, capfd):
    world.network.lose("GET", "/allocation", is_done=False, times=8)
    assert hosts.get_allocations_for_consumer(world.u("i")) is None
    assert hosts.get_allocation_candidates("resources=VCPU:1") == (None, None, None)
    assert capfd.readouterr().err.count('"event":"placement_away"') == 1
    assert hosts.get_allocations_for_consumer(world.u("i")) == {}


def test_a_question_for_candidates_that_cannot_be_meant_has_none(hosts):
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
