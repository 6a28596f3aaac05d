"""The thread that follows Nova's databases, with scripted readings."""

import time
from contextlib import contextmanager

import msgspec

from roost.app.up import open_product
from roost.errors import Unavailable
from roost.model.names import uuid_bytes, uuid_text
from roost.model.settings.roost_settings import Settings
from roost.model.writes import Claim, ConsumerRow
from roost.nova import nova_service
from roost.nova.database.nova_fleet import FleetChanges, NovaAggregate, NovaInstance
from roost.nova.nova_service import NovaFollower
from roost.placement.write_plan import Plan
from roost.placement.writes.claims import release_of
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.products import request
from tests.support.fleets.worlds import hosts

ME, OTHER = uuid_named("me"), uuid_named("other")


class Readings:
    """A reader of databases: each reading has the next changes."""

    def __init__(self):
        self.next = FleetChanges()

    def read(self):
        """Return the next changes once."""
        changes, self.next = self.next, FleetChanges()
        return changes


class Follower:
    """A follower with a clock that the test sets, seconds after the present."""

    def __init__(self, product, serving, *, is_remote):
        self.readings, self.later_s, self._serving = Readings(), 0.0, serving
        start_s = serving.run(lambda current: current.state.now_s)
        self._follower = NovaFollower(
            self.readings,
            serving,
            chores=None,
            shadow=None,
            poll_s=1.0,
            now_s=lambda: start_s + 1.0 + self.later_s,
            on_first=lambda: None,
            is_remote=is_remote,
        )
        self.host = product.state.hosts.names[0]

    def follow(self, **changes):
        """Read changes, and return the uuids of the instances in the columns."""
        self.readings.next = FleetChanges(**changes)
        self._follower.follow()
        holders = self._serving.state.holders.values()
        return {uuid_text(holder.uuid) for holder in holders if holder.instance is not None}

    def instance(self, uuid):
        """Return an instance on the first host."""
        return NovaInstance(uuid=uuid, host=self.host, node="", cell="", project_id="p", user_id="u")


@contextmanager
def follower(*, is_remote):
    product, serving = open_product("sqlite://", Settings())
    try:
        serving.run(lambda _: product.install(hosts(1)))
        yield Follower(product, serving, is_remote=is_remote), product, serving
    finally:
        serving.stop()


def test_instances_come_and_go_with_nova_if_their_allocations_are_elsewhere():
    with follower(is_remote=True) as (nova, *_):
        assert nova.follow(instances=(nova.instance(ME), nova.instance(OTHER))) == {ME, OTHER}
        assert nova.follow() == {ME, OTHER}
        nova.later_s = 5.0
        assert nova.follow(gone_instances=(ME,)) == {OTHER}


def test_instances_without_allocations_here_are_ignored_if_allocations_are_here():
    with follower(is_remote=False) as (nova, *_):
        assert nova.follow(instances=(nova.instance(ME),)) == set()
        assert nova.follow(gone_instances=(ME,)) == set()


def test_decision_that_nova_never_confirms_is_forgotten_unless_a_cell_is_silent():
    with follower(is_remote=True) as (nova, product, serving):
        serving.run(lambda _: product.decide(request(instance_uuids=(ME,))) and None)
        assert uuid_bytes(ME) in serving.state.holders
        assert nova.follow() == {ME}
        nova.later_s = 700.0
        assert nova.follow(silent_cells={"c": "down"}) == {ME}
        assert nova.follow() == set()


def test_instance_whose_allocations_return_is_placed_again_without_a_change_in_nova():
    with follower(is_remote=False) as (nova, product, serving):
        serving.run(lambda _: product.decide(request(instance_uuids=(ME,))) and None)
        assert nova.follow(instances=(nova.instance(ME),)) == {ME}

        def replace(current):
            """Delete the allocations, and claim them for a new consumer, as after a failed move."""
            holder = current.state.holders[uuid_bytes(ME)]
            consumer = ConsumerRow(current.new_id("consumer"), holder.uuid, "p", "u")
            takes = [(consumer.id, inventory_id, amount) for inventory_id, amount in holder.takes]
            return Plan(answer=None, writes=(release_of(current.state, [holder]), Claim([consumer], takes, [])))

        serving.run(replace)
        assert nova.follow() == set()
        assert nova.follow(unchanged=(nova.instance(ME),)) == {ME}


def test_place_of_a_decision_stays_if_nova_still_has_the_old_host_and_allocations_are_elsewhere():
    with follower(is_remote=True) as (nova, product, serving):
        serving.run(lambda _: product.decide(request(instance_uuids=(ME,))) and None)
        instance = msgspec.structs.replace(nova.instance(ME), host="another")
        assert nova.follow(unchanged=(instance,)) == {ME}


def test_decisions_run_between_parts_of_a_comparison(monkeypatch):
    monkeypatch.setattr(nova_service, "_COMPARE_MAX", 3)
    uuids = [uuid_named(str(number)) for number in range(8)]
    with follower(is_remote=True) as (nova, _, serving):
        assert nova.follow(instances=tuple(map(nova.instance, uuids))) == set(uuids)
        sizes, find = [], nova_service.find_surplus

        def find_and_count(state, numbers, known, *, before_s):
            sizes.append(len(numbers))
            return find(state, numbers, known, before_s=before_s)

        monkeypatch.setattr(nova_service, "find_surplus", find_and_count)
        nova.later_s = 700.0
        assert nova.follow() == set(uuids)
        assert sizes == [3, 3, 2]
        assert serving.run(lambda current: len(current.state.holders)) == 8


def test_aggregates_are_written_in_parts(monkeypatch):
    monkeypatch.setattr(nova_service, "BATCH", 2)
    aggregates = tuple(NovaAggregate(id=at, uuid=uuid_named(f"g{at}"), name=f"g{at}") for at in range(5))
    with follower(is_remote=False) as (nova, _, serving):
        before = serving.state.position
        nova.follow(aggregates=aggregates)
        assert serving.state.position - before == 3
        assert sorted(serving.state.aggregate_names.values()) == [each.name for each in aggregates]


class CountedReadings:
    """A reader of databases that counts its readings."""

    def __init__(self, error=None):
        self.count, self.error, self.is_closed = 0, error, False

    def read(self):
        """Return no changes, or raise the error."""
        self.count += 1
        if self.error is not None:
            raise self.error
        return FleetChanges()

    def close(self):
        """Note the end."""
        self.is_closed = True


class NoChores:
    """Writes nothing."""

    def work(self):
        """Write nothing."""

    def close(self):
        """Close nothing."""


@contextmanager
def running(readings):
    """Yield the follower of an empty fleet with a long pause between two readings."""
    _, serving = open_product("sqlite://", Settings())
    nova = NovaFollower(
        readings, serving, chores=NoChores(), shadow=None, poll_s=60.0, now_s=lambda: 1.0, on_first=lambda: None
    )
    try:
        yield nova
    finally:
        nova.stop()
        serving.stop()
        assert readings.is_closed


def hint_until(nova, condition, *, limit_s):
    """Send hints all the time; return whether a condition came true."""
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        nova.hint("instances")
        if condition():
            return True
        time.sleep(0.001)
    return False


def test_hint_leads_to_a_reading_and_many_hints_to_few(monkeypatch):
    monkeypatch.setattr(nova_service, "_HINT_PAUSE_S", 0.05)
    readings = CountedReadings()
    with running(readings) as nova:
        nova.start()
        assert hint_until(nova, lambda: readings.count >= 2, limit_s=30.0)
        start, start_s = readings.count, time.monotonic()
        hint_until(nova, lambda: False, limit_s=0.5)
        assert readings.count - start <= (time.monotonic() - start_s) / 0.05 + 1


def test_hints_do_not_shorten_the_pause_after_an_error():
    readings = CountedReadings(error=Unavailable("down"))
    with running(readings) as nova:
        nova.start()
        assert not hint_until(nova, lambda: readings.count > 1, limit_s=0.5)


def test_follower_that_never_started_can_be_stopped():
    with running(CountedReadings()):
        pass
