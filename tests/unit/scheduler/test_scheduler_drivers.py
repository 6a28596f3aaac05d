"""The chance and caching drivers; all other tests use the filter driver."""

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
from tests.support.fleets.worlds import FixedClock, host, hosts, merge_fleets, roost_on, settings_of


def settings(driver, **more):
    return msgspec.structs.replace(settings_of(**more), scheduler=Scheduler(driver=driver))


def chance_roost(seed, *parts, **more):
    product = roost_on(settings=settings("chance", **more), seed=seed)
    product.install(merge_fleets(*parts))
    return product


def hosts_of(decision):
    return [pick.host for pick in decision.picks]


def test_chance_picks_any_host_that_is_up_and_has_room():
    down = host("down", facts=HostFacts(is_disabled=True), VCPU=64, MEMORY_MB=64)
    small = host("small", VCPU=1, MEMORY_MB=8)
    counts = Counter(hosts_of(chance_roost(seed, hosts(4), down, small).decide(request(2)))[0] for seed in range(200))
    assert set(counts) == {"h0", "h1", "h2", "h3"}
    assert min(counts.values()) > 20


def test_chance_skips_other_rules_but_claims_and_stores_evidence():
    product = chance_roost(1, hosts(5), enabled_filters=("RetryFilter", "ComputeFilter"))
    decision = product.decide(request(8))
    assert [stage.rule for stage in decision.stages][-1] == "compute"
    assert (decision.scales, decision.best[0].total) == ([], 0.0)
    (alternates,) = decision.alternates.values()
    assert len({*hosts_of(decision), *(pick.host for pick in alternates)}) == 3
    assert product.decision(decision.uuid) == decision
    assert product.replay(decision.uuid).is_same
    again = product.decide(request(8, count=4))
    assert sorted([*hosts_of(decision), *hosts_of(again)]) == ["h0", "h1", "h2", "h3", "h4"]
    assert not product.decide(request(8)).is_granted


def test_chance_picks_random_alternates():
    first = {
        next(iter(chance_roost(seed, hosts(6)).decide(request()).alternates.values()))[0].host for seed in range(60)
    }
    assert len(first) == 6


def test_chance_repeats_its_picks_with_the_same_seed():
    assert [hosts_of(chance_roost(7, hosts(9)).decide(request(count=5))) for _ in range(2)].count(
        hosts_of(chance_roost(7, hosts(9)).decide(request(count=5)))
    ) == 2


def test_chance_refusal_has_a_reason():
    product = chance_roost(0, host("a", facts=HostFacts(is_disabled=True)))
    assert product.decide(request()).reason == "0 of 1 hosts: 1 is disabled or down"


class CachingWorld:
    """A Roost with the caching driver, beside another Roost that changes the fleet."""

    def __init__(self, *parts: Fleet) -> None:
        store = MemoryStore()
        self.other = roost_on(store)
        self.other.install(merge_fleets(*parts))
        self.clock = FixedClock()
        self.product = Roost(store.peer(), settings("caching"), clock=self.clock, random=SeededRandom(3))

    def host_count(self) -> int:
        """Return the number of hosts in the columns of the caching Roost."""
        return len(self.product.state.hosts)


def test_caching_refreshes_its_columns_once_a_minute():
    world = CachingWorld(hosts(2))
    world.product.decide(request())
    world.other.install(host("new", VCPU=64, MEMORY_MB=64))
    world.clock.time_s += 59.0
    assert hosts_of(world.product.decide(request())) != ["new"]
    assert world.host_count() == 2
    world.clock.time_s += 1.0
    assert hosts_of(world.product.decide(request())) == ["new"]
    assert world.host_count() == 3


def test_outdated_cache_cannot_overbook():
    world = CachingWorld(hosts(2))
    world.product.decide(request())
    assert world.other.decide(request(8)).is_granted
    decision = world.product.decide(request(8))
    assert not decision.is_granted
    assert world.product.utilisation()["VCPU"] == (9, 16)


def test_caching_refreshes_before_it_refuses():
    world = CachingWorld(hosts(1))
    large_request = request(8)
    (pick,) = world.other.decide(large_request).picks
    assert not world.product.decide(large_request).is_granted
    world.other.work([Departure(instance_uuids=(pick.instance_uuid,))])
    assert world.product.decide(large_request).is_granted


def test_caching_refreshes_for_unknown_groups_and_departures():
    world = CachingWorld(hosts(2))
    world.product.decide(request())
    group = ServerGroup(uuid=uuid_named("g"), name="g", policy="affinity")
    world.other.fleet.create_groups([group])
    assert world.product.decide(request(group=group.uuid)).is_granted
    with pytest.raises(NotFound):
        world.product.decide(request(group=uuid_named("nowhere")))
    (pick,) = world.other.decide(request()).picks
    world.product.work([Departure(instance_uuids=(pick.instance_uuid,))])
    assert world.product.utilisation()["VCPU"][0] == 2
