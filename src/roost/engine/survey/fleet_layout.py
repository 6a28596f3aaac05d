"""The steady parts of a snapshot of the fleet: order, names, places, racks and capacities of hosts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import AnyArray, Mask, Rows, Scores
from roost.engine.survey.column_memory import Steadiness, find_hosts, pad
from roost.engine.survey.reported_facts import ReportedFacts

CLASSES_MAX = 8
_CHUNK = 1000
_GENERATION_BYTES = 16
# The amounts of hosts that report their own: class, and columns of total, ratio, reserved and used amounts. Without a
# column of the ratio, the class has it.
SELF_REPORTED = (
    ("VCPU", "vcpus_total", "cpu_allocation_ratio", None, "vcpus_used"),
    ("MEMORY_MB", "total_usable_ram_mb", None, "reserved_ram_mb", "used_ram_mb"),
    ("DISK_GB", "total_usable_disk_gb", None, "reserved_disk_gb", "used_disk_gb"),
)

ZoneOf = Callable[[frozenset[int]], str]  # numbers of aggregates -> the zone of a host in them; empty: none
Pause = Callable[[], None]


class Place(NamedTuple):
    """A set of aggregates, and its zone."""

    zone: int  # index in ``Places.zones``
    aggregates: tuple[int, ...]  # indexes in ``Places.aggregates``, rising


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """The sets of aggregates of hosts.

    Args:
        of_host: uint16 or uint32, shape (hosts,), index in ``places``.
        zones: names, ordered; an empty name stands for no zone.
        aggregates: uuid and name, ordered by name.
    """

    of_host: AnyArray
    places: Sequence[Place]
    zones: Sequence[str]
    aggregates: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Racks:
    """The racks of hosts, ordered by name; ``of_host`` as in ``Places``. An empty name stands for no rack."""

    of_host: AnyArray
    names: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capacities:
    """The capacities of hosts.

    Args:
        class_ids: numbers of the classes; None: hosts report their own amounts.
        classes: names of the classes.
        capacity: float64, shape (classes, hosts), in the units of the classes.
        provider_rows: intp, shape (members,), the providers in the trees of all hosts.
        host_of: intp, shape (members,), the host of each, rising; None: one provider per host, in order.
        kind_of_host: uint16 or uint32, shape (hosts,), index in ``kinds``.
        kinds: distinct capacities of the classes.
    """

    class_ids: Sequence[int] | None
    classes: Sequence[str]
    capacity: Scores
    provider_rows: Rows
    host_of: Rows | None
    kind_of_host: AnyArray
    kinds: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FleetLayout:
    """The live hosts, ordered by stored id. Without changes, a part is the same object as before.

    Args:
        rows: intp, shape (hosts,), host rows.
        generation: hash of ids, names and classes.
        names: names of nodes, one in a line.
    """

    rows: Rows
    generation: str
    names: bytes
    capacities: Capacities
    places: Places
    racks: Racks

    def equals(self, other: "FleetLayout") -> bool:
        """Return whether another layout has the same hosts, kinds, places and racks."""
        return (
            self.generation == other.generation
            and _are_equal(self.capacities, other.capacities, ("kind_of_host", "kinds"))
            and _are_equal(self.places, other.places, ("of_host", "places", "zones", "aggregates"))
            and _are_equal(self.racks, other.racks, ("of_host", "names"))
        )


class HostOrder(NamedTuple):
    """The live hosts, ordered by stored id; as in ``FleetLayout``."""

    rows: Rows
    generation: str


def read_order(state: State) -> HostOrder:
    """Return the order of the hosts; only for the thread that owns the columns."""
    facts = ReportedFacts()
    facts.refresh(state.hosts, pause=_continue)
    return LayoutReader().read_order(state, facts, pause=_continue)


def _continue() -> None:
    """Do nothing."""


class LayoutReader:
    """Reads the layout of one state; reads parts again only after changes."""

    def __init__(self) -> None:
        self._is_alive: Mask | None = None
        self._rows: Rows = np.zeros(0, dtype=np.intp)
        self._ids: AnyArray = np.zeros(0, dtype=np.int64)
        self._capacities: Capacities | None = None
        self._places: Places | None = None
        self._rack_numbers: AnyArray | None = None
        self._racks: Racks | None = None
        self._named: object = None
        self._generation, self._names = "", b""
        self._steady_capacities, self._steady_places = Steadiness(), Steadiness()

    def read(self, state: State, facts: ReportedFacts, *, zone_of: ZoneOf, pause: Pause) -> FleetLayout:
        """Return the present layout.

        Args:
            facts: the facts of all hosts, just read.
            zone_of: returns the zone of a host from its aggregates.
            pause: called after each chunk of work.
        """
        order = self.read_order(state, facts, pause=pause)
        assert self._capacities is not None, "the order depends on the classes"
        return FleetLayout(
            rows=order.rows,
            generation=order.generation,
            names=self._names,
            capacities=self._capacities,
            places=self._read_places(state, zone_of, pause),
            racks=self._read_racks(state),
        )

    def read_order(self, state: State, facts: ReportedFacts, *, pause: Pause) -> HostOrder:
        """Return the present order of the hosts; the arguments are those of ``read``."""
        if self._is_alive is None or not np.array_equal(self._is_alive, facts.is_alive):
            self._read_rows(state, facts.is_alive)
        capacities = self._read_capacities(state, pause)
        named = facts.nodes_version, tuple(capacities.classes), id(self._rows)
        if named != self._named:
            self._read_names(facts.nodes, capacities.classes)
            self._named = named
        return HostOrder(self._rows, self._generation)

    def _read_rows(self, state: State, is_alive: Mask) -> None:
        rows = np.flatnonzero(is_alive)
        ids = np.array(state.hosts.ids[: len(is_alive)], dtype=np.int64)[rows]
        order = np.argsort(ids, kind="stable")
        self._rows, self._ids = rows[order], ids[order]
        self._is_alive = is_alive
        self._steady_capacities, self._steady_places = Steadiness(), Steadiness()
        self._rack_numbers = None

    def _read_names(self, nodes: Sequence[str], classes: Sequence[str]) -> None:
        names = [nodes[row] for row in self._rows.tolist()]
        text = "\n".join(names)
        if text.count("\n") != max(len(names) - 1, 0) or "\r" in text:
            text = "\n".join(name.replace("\n", " ").replace("\r", " ") for name in names)
        self._names = f"{text}\n".encode() if names else b""
        digest = blake2b(self._ids.astype("<i8").tobytes(), digest_size=_GENERATION_BYTES)
        digest.update("\n".join(classes).encode() + b"\0" + self._names)
        self._generation = digest.hexdigest()

    def _read_capacities(self, state: State, pause: Pause) -> Capacities:
        versions = (
            state.inventory_version,
            state.providers.shape_version,
            state.changes.epoch if state.hosts.are_self_reported else 0,
            tuple(state.classes),
        )
        if self._steady_capacities.must_compute(versions) or self._capacities is None:
            assert self._is_alive is not None, "the order is read first"
            if state.hosts.are_self_reported:
                self._capacities = _read_self_reported(state, self._rows)
            else:
                self._capacities = _read_capacities(state, self._is_alive, self._rows, pause=pause)
        return self._capacities

    def _read_places(self, state: State, zone_of: ZoneOf, pause: Pause) -> Places:
        versions = state.membership.version, len(state.aggregate_versions), sum([*state.aggregate_versions.values()])
        if self._steady_places.must_compute(versions) or self._places is None:
            self._places = _read_places(state, self._rows, zone_of, pause=pause)
        return self._places

    def _read_racks(self, state: State) -> Racks:
        numbers = state.hosts.rack.data[self._rows]
        if self._racks is None or self._rack_numbers is None or not np.array_equal(numbers, self._rack_numbers):
            names = {number: name for name, number in list(state.hosts.racks.items())}
            self._racks = _group_racks(numbers, names)
            self._rack_numbers = numbers
        return self._racks


def _read_capacities(state: State, is_alive: Mask, rows: Rows, *, pause: Pause) -> Capacities:
    host_row_of = find_hosts(state, is_alive)
    position_of: Rows = np.zeros(len(is_alive) + 1, dtype=np.intp)
    position_of[rows] = np.arange(len(rows))
    members = np.flatnonzero(host_row_of < len(is_alive))
    host_of = position_of[host_row_of[members]]
    order = np.argsort(host_of, kind="stable")
    members, host_of = members[order], host_of[order]
    found: list[tuple[int, str, int, Scores]] = []
    for class_id, columns in list(state.classes.items()):
        amounts = pad(columns.capacity, len(host_row_of))[members]
        sums: AnyArray = np.bincount(host_of, weights=amounts, minlength=len(rows))
        count = int(np.count_nonzero(sums > 0))
        if count:
            found.append((-count, state.class_ids.name_of(class_id), class_id, sums))
            found = sorted(found, key=lambda each: each[:2])[:CLASSES_MAX]
        pause()
    found.sort(key=lambda each: each[2])
    capacity: Scores = np.array([each for *_, each in found], dtype=np.float64).reshape(len(found), len(rows))
    kind_of_host, kinds = _group_kinds(capacity)
    return Capacities(
        class_ids=[class_id for _, _, class_id, _ in found],
        classes=[name for _, name, _, _ in found],
        capacity=capacity,
        provider_rows=members,
        host_of=None if np.array_equal(host_of, np.arange(len(rows))) else host_of,
        kind_of_host=kind_of_host,
        kinds=kinds,
    )


def _read_self_reported(state: State, rows: Rows) -> Capacities:
    columns, roots = state.hosts.columns, state.hosts.provider_row.data[rows]
    capacity: Scores = np.empty((len(SELF_REPORTED), len(rows)), dtype=np.float64)
    for at, (name, total, ratio_name, reserved, _) in enumerate(SELF_REPORTED):
        class_id = state.class_ids.id_of(name)
        known = None if class_id is None else state.classes.get(class_id)
        ratios = columns[ratio_name].data[rows] if ratio_name else 1.0 if known is None else known.ratio.data[roots]
        amounts = columns[total].data[rows] - (columns[reserved].data[rows] if reserved else 0.0)
        capacity[at] = np.floor(np.maximum(amounts * ratios, 0.0))
    kind_of_host, kinds = _group_kinds(capacity)
    return Capacities(
        class_ids=None,
        classes=[name for name, *_ in SELF_REPORTED],
        capacity=capacity,
        provider_rows=rows,
        host_of=None,
        kind_of_host=kind_of_host,
        kinds=kinds,
    )


def _group_kinds(capacity: Scores) -> tuple[AnyArray, list[list[int]]]:
    """Return the kind of each host, and the capacities of each kind, in rising order."""
    codes: Rows = np.zeros(capacity.shape[1], dtype=np.intp)
    for amounts in capacity:
        values, inverse = np.unique(amounts, return_inverse=True)
        codes = np.unique(codes * max(len(values), 1) + inverse, return_inverse=True)[1]
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    return _narrow(codes, len(first)), [[int(each) for each in kind] for kind in capacity[:, first].T.tolist()]


def _read_places(state: State, rows: Rows, zone_of: ZoneOf, *, pause: Pause) -> Places:
    labels_of = state.membership.labels_of
    numbers: dict[frozenset[int], int] = {}
    number_of: list[int] = []
    for at, root in enumerate(state.hosts.provider_row.data[rows].tolist()):
        if at % _CHUNK == _CHUNK - 1:
            pause()
        number_of.append(numbers.setdefault(labels_of(root), len(numbers)))
    zone_of_set = {each: zone_of(each) for each in numbers}
    zones = sorted(set(zone_of_set.values()))
    zone_index = {zone: index for index, zone in enumerate(zones)}
    shown = {
        aggregate: (state.aggregates.name_of(aggregate), state.aggregate_names.get(aggregate, ""))
        for aggregate in frozenset[int]().union(*numbers)
    }
    ordered = sorted(shown, key=lambda aggregate: (shown[aggregate][1], shown[aggregate][0]))
    index_of = {aggregate: index for index, aggregate in enumerate(ordered)}
    place_of = [
        Place(zone_index[zone_of_set[each]], tuple(sorted(index_of[aggregate] for aggregate in each)))
        for each in numbers
    ]
    places = sorted(place_of)
    place_index = {place: index for index, place in enumerate(places)}
    final: Rows = np.array([place_index[each] for each in place_of], dtype=np.intp)
    return Places(
        of_host=_narrow(final[np.array(number_of, dtype=np.intp)], len(places)),
        places=places,
        zones=zones,
        aggregates=[shown[aggregate] for aggregate in ordered],
    )


def _group_racks(numbers: AnyArray, names: dict[int, str]) -> Racks:
    used, inverse = np.unique(numbers, return_inverse=True)
    used_names = [names[number] for number in used.tolist()]
    ordered = sorted(used_names)
    index_of = {name: index for index, name in enumerate(ordered)}
    final: Rows = np.array([index_of[name] for name in used_names], dtype=np.intp)
    return Racks(of_host=_narrow(final[inverse], len(ordered)), names=ordered)


def _narrow(indexes: AnyArray, count: int) -> AnyArray:
    return indexes.astype(np.uint16 if count <= 1 << 16 else np.uint32)


def _are_equal(one: object, other: object, fields: Sequence[str]) -> bool:
    return one is other or all(_is_equal(getattr(one, name), getattr(other, name)) for name in fields)


def _is_equal(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one == other
