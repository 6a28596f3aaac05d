"""Two schedulers on one PostgreSQL write the same hosts of Nova at the same time."""

from contextlib import contextmanager

import pytest

from roost.app.up import open_product
from roost.errors import Unavailable
from roost.model.host import HostFacts
from roost.model.provider import Inventory, ProviderSpec
from roost.model.settings.roost_settings import Settings
from roost.nova.database.nova_fleet import ComputeNode, FleetChanges
from roost.nova.nova_service import NovaFollower
from tests.support.fleets.named_uuids import uuid_named

NODE = uuid_named("a")


class RacyServing:
    """Runs tasks, each after a rival's write that the columns of this process do not have yet."""

    def __init__(self, serving) -> None:
        self.serving, self.rivals = serving, []

    def run(self, task):
        """Run a task."""

        def late_task(current):
            if self.rivals:
                self.rivals.pop(0)()
            return task(current)

        return self.serving.run(late_task)


class Scheduler:
    """A follower of Nova's databases, with scripted readings."""

    def __init__(self, product, serving) -> None:
        self.product, self.serving = product, RacyServing(serving)
        self._next = FleetChanges()
        self._follower = NovaFollower(
            self, self.serving, chores=None, shadow=None, poll_s=1.0, now_s=lambda: 1000.0, on_first=lambda: None
        )

    def read(self):
        """Return the next changes once, as a reader does."""
        changes, self._next = self._next, FleetChanges()
        return changes

    def follow(self, **facts):
        """Read the facts of the node, if there are any, and write what is due."""
        node = ComputeNode(
            uuid=NODE, host="a", node="a", cell="c", facts=HostFacts(**facts), is_mapped=True, is_ready=True
        )
        self._next = FleetChanges(computes=(node,)) if facts else FleetChanges()
        self._follower.follow()

    def reason(self):
        """Return the reason why the host is disabled, with the changes of all processes."""
        return self.serving.run(lambda current: current.state.hosts.facts[0].disabled_reason)


@pytest.fixture
def schedulers(postgres_url):
    with _scheduler(postgres_url) as one, _scheduler(postgres_url) as other:
        spec = ProviderSpec(uuid=NODE, name="a", inventories={"VCPU": Inventory(total=8)})
        one.serving.run(lambda _: one.product.placement.create_providers([spec]))
        one.follow(is_disabled=True, disabled_reason="at first")
        yield one, other


@contextmanager
def _scheduler(url):
    product, serving = open_product(url, Settings())
    try:
        yield Scheduler(product, serving)
    finally:
        serving.stop()


def test_scheduler_that_loses_a_race_over_a_host_writes_it_again(schedulers):
    one, other = schedulers
    one.serving.rivals = [lambda: other.follow(is_disabled=True, disabled_reason="old")]
    one.follow(is_disabled=True, disabled_reason="new")
    assert one.serving.rivals == []
    assert (one.reason(), other.reason()) == ("new", "new")


def test_host_stays_due_after_too_many_lost_races(schedulers):
    one, other = schedulers
    one.serving.rivals = [
        lambda number=number: other.follow(is_disabled=True, disabled_reason=f"{number}") for number in range(10)
    ]
    with pytest.raises(Unavailable, match="another process changed the same host"):
        one.follow(is_disabled=True, disabled_reason="new")
    one.serving.rivals = []
    one.follow()
    assert (one.reason(), other.reason()) == ("new", "new")
