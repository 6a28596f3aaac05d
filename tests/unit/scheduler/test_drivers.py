"""The drivers chance and caching; the driver filter is what all other tests use."""

from collections import Counter

import msgspec
import pytest

from roost.app import Roost
from roost.errors import NotFound
from roost.model.fleet import Departure, Fleet
from roost.model.group import ServerGroup
from roost.model.host import HostFacts
from roost.model.settings.roost_settings import Scheduler
from roost.simulator.seeded_random import SeededRandom
from roost.store.memory_store import MemoryStore
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.products import request
from tests.support.fleets.worlds import FixedClock, host, hosts, joined, roost_on, settings_of


def settings(driver, **more):
    return msgspec.structs.replace(settings_of(**more), scheduler=Scheduler(driver=driver))


def by_chance(seed, *parts, **more):
    product = roost_on(settings=settings("chance", **more), seed=seed)
    product.install(joined(*parts))
    return product


def drawn(decision):
    return [pick.host for pick in decision.picks]


def test_chance_takes_any_host_that_is_up_and_has_room():
    down = host("down", facts=HostFacts(is_disabled=True), VCPU=64, MEMORY_MB=64)
    small = host("small", VCPU=1, MEMORY_MB=8)
    found = Counter(drawn(by_chance(seed, hosts(4), down, small).decide(request(2)))[0] for seed in range(200))
    assert set(found) == {"h0", "h1", "h2", "h3"}
    assert min(found.values()) > 20


def test_chance_asks_no_other_rule_and_still_claims_with_evidence_and_alternates():
    product = by_chance(1, hosts(5), enabled_filters=("RetryFilter", "ComputeFilter"))
    decision = product.decide(request(8))
    assert [stage.rule for stage in decision.stages][-1] == "compute"
    assert (decision.scales, decision.best[0].total) == ([], 0.0)
    (alternates,) = decision.alternates.values()
    assert len({*drawn(decision), *(pick.host for pick in alternates)}) == 3
    assert product.decision(decision.uuid) == decision
    assert product.replay(decision.uuid).is_same
    again = product.decide(request(8, count=4))
    assert sorted([*drawn(decision), *drawn(again)]) == ["h0", "h1", "h2", "h3", "h4"]
    assert not product.decide(request(8)).is_granted


def test_alternates_come_by_chance_too():
    first = {next(iter(by_chance(seed, hosts(6)).decide(request()).alternates.values()))[0].host for seed in range(60)}
    assert len(first) == 6


def test_chance_repeats_itself_by_its_seed():
    assert [drawn(by_chance(7, hosts(9)).decide(request(count=5))) for _ in range(2)].count(
        drawn(by_chance(7, hosts(9)).decide(request(count=5)))
    ) == 2


def test_chance_says_why_nobody_is_left():
    product = by_chance(0, host("a", facts=HostFacts(is_disabled=True)))
    assert product.decide(request()).reason == "0 of 1 hosts: 1 are disabled or down"


class Caching:
    """A Roost that decides by what it knew lately, beside one that changes things."""

    def __init__(self, *parts: Fleet) -> None:
        store = MemoryStore()
        self.other = roost_on(store)
        self.other.install(joined(*parts))
        self.clock = FixedClock()
        self.product = Roost(store.peer(), settings("caching"), clock=self.clock, random=SeededRandom(3))

    def seen(self) -> int:
        """Count the hosts that it knows."""
        return len(self.product.state.hosts)


def test_caching_looks_for_what_others_did_only_now_and_then():
    world = Caching(hosts(2))
    world.product.decide(request())
    world.other.install(host("new", VCPU=64, MEMORY_MB=64))
    world.clock.time_s += 59.0
    assert drawn(world.product.decide(request())) != ["new"]
    assert world.seen() == 2
    world.clock.time_s += 1.0
    assert drawn(world.product.decide(request())) == ["new"]
    assert world.seen() == 3


def test_what_caching_does_not_know_cannot_overbook():
    world = Caching(hosts(2))
    world.product.decide(request())
    assert world.other.decide(request(8)).is_granted
    decision = world.product.decide(request(8))
    assert not decision.is_granted
    assert world.product.utilisation()["VCPU"] == (9, 16)


def test_caching_refuses_only_by_what_is_true_now():
    world = Caching(hosts(1))
    wanted = request(8)
    (pick,) = world.other.decide(wanted).picks
    assert not world.product.decide(wanted).is_granted
    world.other.work([Departure(instance_uuids=(pick.instance_uuid,))])
    assert world.product.decide(wanted).is_granted


def test_caching_knows_what_a_request_names_and_what_leaves():
    world = Caching(hosts(2))
    world.product.decide(request())
    group = ServerGroup(uuid=uuid_named("g"), name="g", policy="affinity")
    world.other.fleet.create_groups([group])
    assert world.product.decide(request(group=group.uuid)).is_granted
    with pytest.raises(NotFound):
        world.product.decide(request(group=uuid_named("nowhere")))
    (pick,) = world.other.decide(request()).picks
    world.product.work([Departure(instance_uuids=(pick.instance_uuid,))])
    assert world.product.utilisation()["VCPU"][0] == 2
