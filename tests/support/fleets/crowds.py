"""Large fleets of hosts with one provider each, and random events on them from a seed."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import msgspec

from roost.engine.columns.apply import apply, apply_release, occupy, recount_hosts
from roost.engine.columns.state import State
from roost.model import writes
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.request import Request
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.model.writes import CLASS_BITS
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.shape.host_ranking import Ranking
from roost.scheduler.shape.shape import Shape
from roost.scheduler.shape.shape_cache import ShapeCache

CLASSES = {"VCPU": 1, "MEMORY_MB": 2, "DISK_GB": 3}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """The amounts and facts of one kind of host."""

    vcpus: int = 8
    memory_mb: int = 16
    disk_gb: int = 0
    memory_reserved: int = 0
    facts: HostFacts = field(default_factory=HostFacts)


def crowd(kinds: Sequence[Kind]) -> State:
    """Return a state with one host for each kind, in order, named host-0, host-1 and so on."""
    state = State()
    for name, number in CLASSES.items():
        apply(state, writes.PutSymbol("resource_class", number, name))
    for number, kind in enumerate(kinds, start=1):
        body = uuid.UUID(int=number).bytes
        name = f"host-{number - 1}"
        apply(state, writes.PutProvider(number, body, name, None, number, 0))
        totals = ((1, kind.vcpus, 0), (2, kind.memory_mb, kind.memory_reserved), (3, kind.disk_gb, 0))
        inventories = [
            writes.InventoryRow(class_id, total, reserved, 1, total, 1, 1.0)
            for class_id, total, reserved in totals
            if total
        ]
        apply(state, writes.PutInventories(number, 0, inventories))
        facts = msgspec.Raw(msgspec.msgpack.encode(kind.facts))
        apply(state, writes.PutHost(number, number, name, name, facts, 0))
    recount_hosts(state)
    return state


class Tenancy:
    """Arrivals and departures of instances on the hosts of a crowd."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.living: list[int] = []
        self._next = 1

    def arrive(self, row: int, **amounts: int) -> int:
        """Allocate amounts on a host for a new instance, even beyond capacity."""
        number, provider_id = self._next, self.state.providers.ids[self.state.hosts.provider_row.data.item(row)]
        self._next += 1
        takes = [(number, provider_id << CLASS_BITS | CLASSES[name], amount) for name, amount in amounts.items()]
        consumer = writes.ConsumerRow(number, uuid.UUID(int=number << 64).bytes, "", "")
        instance = writes.InstanceRow(number, self.state.hosts.ids[row], 0)
        occupy(self.state, writes.Claim([consumer], takes, [instance]))
        self.living.append(number)
        return number

    def leave(self, number: int) -> None:
        """Remove an instance."""
        self.living.remove(number)
        apply_release(self.state, writes.Release([number], []))


class ShapeProbe:
    """A shape, and the number of its answers from the pool.

    Args:
        state, flavor: of the request.
        rules: of the shape.
        fresh_rules: of the fresh shapes; None: the same.
        count: instances of the request.
    """

    def __init__(
        self, state: State, flavor: Flavor, rules: Rules, *, fresh_rules: Rules | None = None, count: int = 1
    ) -> None:
        self._state, self._request = state, Request(flavor=flavor, count=count)
        self.flavor, self.rules = flavor, rules
        self._fresh_rules = rules
        self.shape = self.fresh()
        self._fresh_rules = fresh_rules or rules
        self.looks = self.from_pool = 0

    def fresh(self) -> Shape:
        """Return a new shape of the same request, without a pool."""
        return ShapeCache(self._fresh_rules, default_zone="nova", settings=SchedulerSettings()).get(
            self._request, state=self._state, now_s=0.0
        )

    def rank(self, wanted: int) -> Ranking:
        """Rank with the shape, and count answers from its pool."""
        pool = self.shape._pool  # The pool object stays the same only if the answer comes from it.
        ranked = self.shape.rank(wanted)
        self.looks += 1
        self.from_pool += pool is not None and self.shape._pool is pool
        return ranked


def bits(ranked: Ranking) -> tuple[object, ...]:
    """Return the content of a ranking in a form that compares floats bit by bit."""
    return (
        ranked.rows,
        ranked.left,
        ranked.rejects,
        [[raw.hex() for raw in raws] for raws in ranked.raws],
        [total.hex() for total in ranked.totals],
        [(scale.low.hex(), scale.high.hex(), scale.multiplier.hex()) for scale in ranked.scales],
    )


Step = Callable[[Random, Tenancy, ShapeProbe], None]


def pick_best(_: Random, tenancy: Tenancy, shape: ShapeProbe) -> None:
    """Allocate the flavor on the best host, like the scheduler."""
    ranked = shape.rank(1)
    if ranked.rows:
        allocate_flavor(tenancy, ranked.rows[0], shape.flavor)


def pick_near_best(random: Random, tenancy: Tenancy, shape: ShapeProbe) -> None:
    """Allocate the flavor on a good host, like another scheduler."""
    ranked = shape.rank(random.choice((5, 40)))
    if ranked.rows:
        allocate_flavor(tenancy, random.choice(ranked.rows), shape.flavor)


def allocate_anywhere(random: Random, tenancy: Tenancy, _: ShapeProbe) -> None:
    """Allocate other amounts on any host."""
    row = random.randrange(len(tenancy.state.hosts))
    tenancy.arrive(row, VCPU=random.choice((1, 1, 2)), MEMORY_MB=random.choice((1, 1, 3, 8)))


def fill(random: Random, tenancy: Tenancy, _: ShapeProbe) -> None:
    """Fill up or overfill a host, often the one with the most or least free memory."""
    free = tenancy.state.hosts.column("free_ram_mb")
    row = random.choice((int(free.argmax()), int(free.argmin()), random.randrange(len(free))))
    tenancy.arrive(row, VCPU=1, MEMORY_MB=max(int(free[row]), 0) + random.choice((0, 0, 1, 4)) or 1)


def remove_one(random: Random, tenancy: Tenancy, _: ShapeProbe) -> None:
    """Remove an instance, an old one or the newest."""
    if tenancy.living:
        tenancy.leave(random.choice((tenancy.living[-1], random.choice(tenancy.living))))


def run_many_events(random: Random, tenancy: Tenancy, shape: ShapeProbe) -> None:
    """Run many events between two rankings."""
    for _ in range(random.choice((5, 20, 30))):
        random.choice((allocate_anywhere, remove_one))(random, tenancy, shape)


def remove_a_third(random: Random, tenancy: Tenancy) -> None:
    """Remove a third of all instances."""
    for number in random.sample(tenancy.living, len(tenancy.living) // 3):
        tenancy.leave(number)


def allocate_flavor(tenancy: Tenancy, row: int, flavor: Flavor) -> None:
    """Allocate the amounts of a flavor on a host."""
    wanted = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.memory_mb, "DISK_GB": flavor.root_gb}
    tenancy.arrive(row, **{name: amount for name, amount in wanted.items() if amount})
