"""The conductor of a cell when builds fail: alternates, faults and failure counts."""

import pytest

from roost.errors import BuildAborted, BuildFailed, StoreBroken
from roost.model.fleet import Departure
from roost.model.request import Retry
from roost.store.memory_store import MemoryStore
from tests.support.conductors.builders import (
    ScriptedBuilder,
    allocations_of,
    attempts_of,
    conductor,
    failed_builds,
    ladder,
)
from tests.support.databases.racing_stores import RacyStore
from tests.support.fleets.worlds import group, hosts, roost_on, roost_with, settings_of, small_request, uuid_named

ONE = uuid_named("one")


def request_for_one(**more):
    """Return a request for one instance."""
    return small_request(instance_uuids=(ONE,), **more)


def build_one(roost, script, request=None):
    """Build one instance; return the builder and the outcome."""
    builder = ScriptedBuilder(script)
    (outcome,) = conductor(roost, builder).build(request or request_for_one())
    return builder, outcome


def test_build_gets_the_chosen_host_the_allocations_and_the_limits():
    roost = roost_with(ladder(2, cell="east"), settings=settings_of(enabled_filters=["RamFilter"]))
    builder, outcome = build_one(roost, {}, request_for_one(project_id="p"))
    assert (outcome.status, outcome.host, outcome.node, outcome.cell) == ("ACTIVE", "h0", "h0", "east")
    assert (outcome.fault, outcome.unreleased, attempts_of(outcome)) == ("", "", [("h0", "claimed", "")])
    ((instance, host, node, limits),) = builder.seen
    assert (instance.uuid, instance.request.project_id, host, node) == (ONE, "p", "h0", "h0")
    assert instance.allocations == {uuid_named("h0"): {"VCPU": 1, "MEMORY_MB": 1}}
    assert limits == {"memory_mb": 1500.0}
    assert outcome.decision_uuid == roost.decisions()[0].uuid


@pytest.mark.shows("S176")
def test_next_alternate_is_claimed_before_it_is_built():
    roost = roost_with(ladder(3))
    builder = ScriptedBuilder({"h0": [BuildFailed("no network")]})
    claims = []
    builder.meanwhile = lambda uuid, host: claims.append((host, allocations_of(roost.state, uuid)[0]))
    (outcome,) = conductor(roost, builder).build(request_for_one())
    assert claims == [("h0", "h0"), ("h1", "h1")]
    assert (outcome.status, outcome.host, builder.running) == ("ACTIVE", "h1", {ONE: "h1"})
    assert attempts_of(outcome) == [("h0", "claimed", "no network"), ("h1", "claimed", "")]
    assert allocations_of(roost.state, ONE)[0] == "h1"
    assert roost.utilisation()["VCPU"] == (1, 3)


def test_failed_host_is_released_in_the_commit_that_claims_the_next():
    store = MemoryStore()
    roost, watcher = roost_with(ladder(2), store=store), roost_on(store.peer())
    observations = []

    def watch(*_):
        watcher.work([])
        observations.append((allocations_of(watcher.state, ONE)[0], watcher.utilisation()["VCPU"][0]))

    builder = ScriptedBuilder({"h0": [BuildFailed("no")]})
    builder.meanwhile = watch
    conductor(roost, builder).build(request_for_one())
    assert observations == [("h0", 1), ("h1", 1)]


@pytest.mark.shows("S176")
def test_alternate_without_room_is_skipped():
    store = MemoryStore()
    roost, rival = roost_with(ladder(3), store=store), roost_on(store.peer(), seed=9)
    builder = ScriptedBuilder({"h0": [BuildFailed("no")]})
    rivals = [lambda: rival.decide(small_request(force_hosts=("h1",)))]
    builder.meanwhile = lambda *_: rivals.pop()() if rivals else None
    (outcome,) = conductor(roost, builder).build(request_for_one())
    reason = f"provider {uuid_named('h1')} has less than 1 VCPU left"
    assert attempts_of(outcome) == [("h0", "claimed", "no"), ("h1", "refused", reason), ("h2", "claimed", "")]
    assert (outcome.host, allocations_of(roost.state, ONE)[0]) == ("h2", "h2")


def test_alternate_lost_to_a_concurrent_claim_is_skipped():
    store = RacyStore()
    roost, rival = roost_with(ladder(3), store=store), roost_on(store.peer(), seed=9)
    store.rivals = [lambda: None, lambda: rival.decide(small_request(force_hosts=("h1",)))]
    _, outcome = build_one(roost, {"h0": [BuildFailed("no")]})
    assert [refusal.kind for refusal in store.refusals] == ["capacity"]
    assert [(each.host, each.claim) for each in outcome.attempts] == [
        ("h0", "claimed"),
        ("h1", "refused"),
        ("h2", "claimed"),
    ]


def test_alternate_with_repeated_conflicts_is_skipped():
    store = RacyStore()
    roost, rival = roost_with(ladder(3, vcpus=2), store=store), roost_on(store.peer(), seed=9)
    claims = [lambda: rival.decide(small_request(force_hosts=("h1",), vcpus=2, instance_uuids=(uuid_named("thief"),)))]
    release = lambda: rival.work([Departure(instance_uuids=(uuid_named("thief"),))])  # noqa: E731
    store.rivals = [lambda: None, *claims * 3]
    store.afterwards = [lambda: None, *[release] * 6]
    _, outcome = build_one(roost, {"h0": [BuildFailed("no")]}, request_for_one(vcpus=2))
    assert attempts_of(outcome)[1] == ("h1", "refused", "conflicts with concurrent changes on h1 in every attempt")
    assert outcome.host == "h2"


@pytest.mark.shows("S176")
def test_instance_ends_in_error_without_a_claim_after_all_attempts_fail():
    roost = roost_with(ladder(4))
    builder, outcome = build_one(roost, {f"h{number}": [BuildFailed(f"no {number}")] for number in range(4)})
    assert outcome.status == "ERROR"
    assert outcome.fault == (
        "Exceeded maximum number of retries. "
        f"Exceeded max scheduling attempts 3 for instance {ONE}. Last exception: no 2. "
        "Attempts: host h0: no 0; host h1: no 1; host h2: no 2"
    )
    assert attempts_of(outcome) == [(f"h{number}", "claimed", f"no {number}") for number in range(3)]
    assert (outcome.host, outcome.node, outcome.unreleased, builder.running) == ("", "", "", {})
    assert allocations_of(roost.state, ONE) is None
    assert roost.utilisation()["VCPU"] == (0, 4)


@pytest.mark.shows("S176")
def test_fault_reports_that_no_alternate_is_left():
    roost = roost_with(ladder(2))
    _, outcome = build_one(roost, {"h0": [BuildFailed("no")], "h1": [BuildFailed("no")]})
    assert outcome.fault == (
        "Exceeded maximum number of retries. "
        f"Exhausted all hosts available for retrying build failures for instance {ONE}. host h0: no; host h1: no"
    )
    assert roost.utilisation()["VCPU"] == (0, 2)


@pytest.mark.parametrize(
    ("attempts", "forced"),
    [(1, {}), (3, {"force_hosts": ("h0",)}), (3, {"force_nodes": ("h0",)})],
    ids=["one attempt", "a forced host", "a forced node"],
)
def test_build_error_is_the_fault_if_only_one_attempt_is_allowed(attempts, forced):
    roost = roost_with(ladder(3), settings=settings_of(max_attempts=attempts))
    builder, outcome = build_one(roost, {"h0": [BuildFailed("no network")]}, request_for_one(**forced))
    assert (outcome.status, outcome.fault, builder.tried) == ("ERROR", "no network", [(ONE, "h0")])
    assert allocations_of(roost.state, ONE) is None


def test_next_forced_host_is_tried_after_a_failed_build():
    _, outcome = build_one(
        roost_with(ladder(3)), {"h0": [BuildFailed("no")]}, request_for_one(force_hosts=("h0", "h2"))
    )
    assert (outcome.status, outcome.host) == ("ACTIVE", "h2")


def test_attempts_of_earlier_requests_count():
    roost = roost_with(ladder(3))
    _, outcome = build_one(roost, {"h0": [BuildFailed("no")]}, request_for_one(retry=Retry(attempts=3)))
    assert "Exceeded max scheduling attempts 3" in outcome.fault


def test_nothing_is_built_after_earlier_requests_used_all_attempts():
    roost = roost_with(ladder(3))
    builder, outcome = build_one(roost, {}, request_for_one(retry=Retry(attempts=4)))
    assert outcome.fault.endswith(f"Exceeded max scheduling attempts 3 for instance {ONE}. Last exception: None")
    assert (builder.tried, outcome.attempts, allocations_of(roost.state, ONE)) == ([], [], None)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (BuildAborted("the image is broken"), "the image is broken"),
        (ValueError("odd"), "ValueError: odd"),
        (BuildAborted(), "BuildAborted"),
    ],
)
def test_error_that_no_alternate_can_fix_ends_the_build(error, fault):
    roost = roost_with(ladder(3))
    builder, outcome = build_one(roost, {"h0": [error]})
    assert (outcome.status, outcome.fault, builder.tried) == ("ERROR", fault, [(ONE, "h0")])
    assert attempts_of(outcome) == [("h0", "claimed", fault)]
    assert allocations_of(roost.state, ONE) is None


def test_unexpected_build_error_is_logged_as_a_fault(capfd):
    build_one(roost_with(ladder(1)), {"h0": [ValueError("odd")]})
    log = capfd.readouterr().err
    assert log.count('"event":"fault"') == 1
    assert "ValueError: odd" in log


def test_instance_deleted_during_its_build_ends_in_error():
    roost = roost_with(ladder(2))
    builder = ScriptedBuilder()
    builder.meanwhile = lambda uuid, _: roost.work([Departure(instance_uuids=(uuid,))])
    (outcome,) = conductor(roost, builder).build(request_for_one())
    assert (outcome.status, outcome.fault) == ("ERROR", f"the instance {ONE} no longer exists")


def test_instance_deleted_during_a_failed_build_is_not_tried_again():
    roost = roost_with(ladder(2))
    builder = ScriptedBuilder({"h0": [BuildFailed("no")]})
    builder.meanwhile = lambda uuid, _: roost.work([Departure(instance_uuids=(uuid,))])
    (outcome,) = conductor(roost, builder).build(request_for_one())
    assert (outcome.status, outcome.fault) == ("ERROR", f"the instance {ONE} no longer exists")
    assert builder.tried == [(ONE, "h0")]
    assert roost.utilisation()["VCPU"] == (0, 2)


class FullStore(MemoryStore):
    """A store that refuses every commit while ``is_full``."""

    is_full = False

    def commit(self, items):
        """See ``Store.commit``."""
        if self.is_full:
            raise StoreBroken("the disk is full")
        return super().commit(items)


def test_failed_release_is_reported_in_the_outcome():
    store = FullStore()
    roost = roost_with(ladder(2), store=store)
    builder = ScriptedBuilder({"h0": [BuildAborted("no")]})
    builder.meanwhile = lambda *_: setattr(store, "is_full", True)
    (outcome,) = conductor(roost, builder).build(request_for_one())
    assert (outcome.status, outcome.fault, outcome.unreleased) == ("ERROR", "no", "the disk is full")
    assert allocations_of(roost_on(store.peer()).state, ONE)[0] == "h0"


def test_anti_affinity_members_stay_apart_on_alternates():
    roost = roost_with(hosts(3), group("g", "anti-affinity"))
    builder = ScriptedBuilder({"h0": [BuildFailed("no")]})
    outcomes = conductor(roost, builder).build(small_request(in_group="g", count=2))
    assert [(each.status, each.host) for each in outcomes] == [("ACTIVE", "h2"), ("ACTIVE", "h1")]


def test_alternate_against_the_group_policy_is_skipped():
    store = MemoryStore()
    roost, rival = roost_with(hosts(3), group("g", "anti-affinity"), store=store), roost_on(store.peer(), seed=9)
    builder = ScriptedBuilder({"h0": [BuildFailed("no")]})
    rivals = [lambda: rival.decide(small_request(in_group="g", force_hosts=("h1",)))]
    builder.meanwhile = lambda *_: rivals.pop()() if rivals else None
    (outcome,) = conductor(roost, builder).build(request_for_one(in_group="g"))
    reason = "the policy anti-affinity of its server group keeps it away from h1"
    assert attempts_of(outcome) == [("h0", "claimed", "no"), ("h1", "refused", reason), ("h2", "claimed", "")]


# --- counts of failed builds -----------------------------------------------------------------------------------------


def test_failed_builds_are_counted_per_host_until_a_success():
    roost = roost_with(ladder(3, failed=2))
    build_one(roost, {"h0": [BuildFailed("no")], "h1": [BuildFailed("no")]})
    assert failed_builds(roost.state) == {"h0": 3, "h1": 3, "h2": 0}


def test_host_with_a_failed_build_is_chosen_last():
    roost = roost_with(ladder(3, vcpus=4))
    builder, _ = build_one(roost, {"h0": [BuildAborted("no")]})
    assert failed_builds(roost.state) == {"h0": 1, "h1": 0, "h2": 0}
    conductor(roost, builder, seed=8).build(small_request(count=2))
    assert {host for _, host in builder.tried[1:]} == {"h1", "h2"}


def test_concurrent_failed_builds_of_one_host_are_all_counted():
    store = MemoryStore()
    roost, other = roost_with(ladder(2), store=store), roost_on(store.peer(), seed=9)
    builder = ScriptedBuilder({"h0": [BuildAborted("no")]})
    other_builder = ScriptedBuilder({"h0": [BuildAborted("no")]})
    other_builds = [lambda: conductor(other, other_builder, seed=9).build(small_request(force_hosts=("h0",), vcpus=0))]
    builder.meanwhile = lambda *_: other_builds.pop()() if other_builds else None
    conductor(roost, builder).build(request_for_one())
    assert failed_builds(roost.state)["h0"] == 2
