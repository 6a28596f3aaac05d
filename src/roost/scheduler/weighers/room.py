"""room: loss of room for the usual sizes of instances."""

from collections.abc import Hashable, Sequence
from typing import Annotated, ClassVar, NamedTuple

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Scores
from roost.engine.packing.room_value import (
    Claim,
    RoomHosts,
    SizeTable,
    levels_of,
    prices_of,
    room_loss,
    slot_loss,
    slots_of,
    unevenness,
)
from roost.model.evidence.lesson import Lesson
from roost.model.request import Request
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.memoize import Latest
from roost.scheduler.framework.spec import Spec
from roost.scheduler.query.device_demand import DemandCache
from roost.scheduler.rule_support.size_counts import (
    HostKind,
    SizeCounts,
    SizeRequest,
    choose_sizes,
    count_sizes,
    describe_hosts,
    size_table,
)

# Smallest differences, in slots and as a share, that a comparison of hosts mentions.
_LEAST_SLOTS, _LEAST_SHARE = 0.005, 0.0005

_decoder = msgspec.json.Decoder(SizeCounts)


class RoomOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``room``."""

    room_weight_multiplier: Annotated[
        float,
        msgspec.Meta(ge=0.0, description="Weight of keeping room for the sizes of instances that usually arrive."),
    ] = 0.0


class _Priced(NamedTuple):
    """Prices, and the arrays that they were computed from."""

    totals: Amounts
    table: SizeTable
    levels: bytes
    prices: Scores


class _Room(NamedTuple):
    """The room of some hosts, and its value in the fleet."""

    slots: Amounts  # of the hosts in a view
    table: SizeTable
    prices: Scores
    levels: bytes
    host_count: int  # of the fleet


class Room(BaseWeigher[RoomOptions]):
    """Prefer the host that loses the least room for later instances.

    A host loses slots, each for one more instance of a usual size, and it loses room if processors and memory do not
    run out together. The sizes are learned from requests as they arrive.
    """

    options: ClassVar[type[msgspec.Struct]] = RoomOptions
    multiplier_option = "room_weight_multiplier"

    def __init__(self, options: RoomOptions) -> None:
        super().__init__(options)
        self._priced: _Priced | None = None  # the latest prices
        self._find_demand = DemandCache("MEMORY_MB").find
        self._lesson_table = Latest(_decode_table)
        self._describe = Latest(_describe_capacities)
        self._blind_table = Latest(_build_blind_table)

    @property
    def lesson_name(self) -> str:
        """The name of the learned document."""
        return self.name

    def observe(self, request: Request) -> SizeRequest | None:
        """Return the size of the instances of a request."""
        demand = self._find_demand(request)
        if not (demand.cpus or demand.memory_mb):
            return None
        return SizeRequest(demand.cpus, demand.memory_mb, request.count)

    def learn(self, body: bytes | None, observations: Sequence[SizeRequest], hosts: HostView) -> bytes:
        """Count requests, and choose the sizes for which room is kept."""
        counts = SizeCounts() if body is None else _decoder.decode(body)
        return msgspec.json.encode(count_sizes(counts, observations, self._fleet(hosts)))

    def weight_key(self, hosts: HostView, spec: Spec) -> Hashable:
        """Return the size of the instance, the learned document, and how many slots are left, in steps."""
        demand = self._find_demand(spec.request)
        room = self._room(hosts)
        return (demand.cpus, demand.memory_mb, self._version(hosts), room.host_count, room.levels)

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the loss of room by an instance, in slots, negated."""
        room = self._room(hosts)
        return 0.0 - room_loss(
            self._amounts(hosts),
            room.slots,
            room.table,
            prices=room.prices,
            claim=self._claim(spec),
            host_count=room.host_count,
        )

    def compare(self, hosts: HostView, spec: Spec) -> str:
        """Compare the lost slots of two hosts, and how evenly processors and memory are left."""
        room, amounts, claim = self._room(hosts), self._amounts(hosts), self._claim(spec)
        first, second = slot_loss(amounts, room.slots, room.table, prices=room.prices, claim=claim).tolist()
        texts = []
        if abs(first - second) >= _LEAST_SLOTS:
            texts.append(f"loses {abs(second - first):.2f} slots {'less' if first < second else 'more'}")
        first, second = unevenness(amounts, claim).tolist()
        if abs(first - second) >= _LEAST_SHARE:
            order = "more" if first < second else "less"
            texts.append(f"keeps processors and memory {abs(second - first):.1%} {order} even")
        return ", ".join(texts)

    def _claim(self, spec: Spec) -> Claim:
        demand = self._find_demand(spec.request)
        return Claim(float(demand.cpus), float(demand.memory_mb))

    def _version(self, hosts: HostView) -> int:
        lesson = hosts.lesson(self.lesson_name)
        return -1 if lesson is None else lesson.version

    def _fleet(self, hosts: HostView) -> HostKind:
        return self._describe(self._capacities(hosts.all_hosts()))

    def _room(self, hosts: HostView) -> "_Room":
        """Return the slots of some hosts, and the prices of slots in the whole fleet."""
        fleet, lesson = self._fleet(hosts), hosts.lesson(self.lesson_name)
        # Before anything is learned, room is kept for shares of a usual host.
        table = self._blind_table(fleet) if lesson is None else self._lesson_table(lesson)

        def count(view: HostView) -> Amounts:
            amounts = self._amounts(view)
            return slots_of(amounts.free_cpus, amounts.free_memory, table)

        slots, totals = hosts.follow_with_sum((self.name, "slots", self._version(hosts)), count)
        priced = self._priced
        if priced is None or priced.totals is not totals or priced.table is not table:
            levels = levels_of(totals)
            priced = self._priced = _Priced(
                totals, table, levels.tobytes(), prices_of(levels, table, host_count=fleet.host_count)
            )
        return _Room(slots, table, priced.prices, priced.levels, fleet.host_count)

    def _amounts(self, hosts: HostView) -> RoomHosts:
        capacities = self._capacities(hosts)
        cpus, memory = capacities[:, 0], capacities[:, 1]
        return RoomHosts(
            cpus=cpus,
            memory=memory,
            free_cpus=cpus - hosts.column("vcpus_used"),
            free_memory=memory - hosts.column("used_ram_mb"),
        )

    def _capacities(self, hosts: HostView) -> Scores:
        """Return processors and memory of each host, with overcommit and without reserved amounts."""
        return hosts.memoize((self.name, "capacity", hosts.epoch), _read_capacities)


def _read_capacities(hosts: HostView) -> Scores:
    cpus = hosts.class_capacity("VCPU").sum(axis=1) + hosts.class_capacity("PCPU").sum(axis=1)
    memory_mb = hosts.class_capacity("MEMORY_MB").sum(axis=1)
    # Without a Placement, hosts report their own amounts.
    own_cpus = hosts.column("vcpus_total") * hosts.column("cpu_allocation_ratio")
    own_memory_mb = hosts.column("total_usable_ram_mb") - hosts.column("reserved_ram_mb")
    amounts = np.column_stack((np.where(cpus > 0, cpus, own_cpus), np.where(memory_mb > 0, memory_mb, own_memory_mb)))
    return np.where(hosts.alive()[:, np.newaxis], np.maximum(amounts, 0.0), 0.0)


def _describe_capacities(capacities: Scores) -> HostKind:
    return describe_hosts(capacities[:, 0], capacities[:, 1])


def _build_blind_table(hosts: HostKind) -> SizeTable:
    return size_table(choose_sizes({}, hosts))


def _decode_table(lesson: Lesson) -> SizeTable:
    return size_table(_decoder.decode(lesson.body).sizes)
