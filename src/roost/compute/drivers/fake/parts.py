"""The parts of a fake node: their free amounts, and the choice among them."""

from collections.abc import Iterable, Mapping

from roost.compute.drivers.fake.guests import Uses
from roost.model.work.guest import GuestSpec

# Classes with overcommit. Devices and dedicated processors have none.
SOFT = frozenset({"VCPU", "MEMORY_MB"})


def room_of(parts: Mapping[str, Mapping[str, int]], used: Iterable[Uses]) -> Uses:
    """Return the free amounts of each part, by resource class; negative if overcommitted."""
    room = {part: {**amounts} for part, amounts in parts.items()}
    for uses in used:
        for part, amounts in uses.items():
            for name, amount in amounts.items():
                if name in room.get(part, {}):
                    room[part][name] -= amount
    return room


def place(amounts: Mapping[str, int], room: Uses) -> Uses | None:
    """Choose parts for amounts, and subtract the amounts from the free amounts in ``room``.

    Classes with a common part go together to the emptiest part with enough room. If no part has enough, they are spread
    over several parts. Classes that no part has are left out.

    Returns:
        The amounts by part; ``VCPU`` and ``MEMORY_MB`` may overcommit the emptiest part. None if another class lacks
        room; ``room`` is then unchanged.
    """
    classes = [name for name in amounts if any(name in there for there in room.values())]
    uses: Uses = {}
    # GPUs and cells have no class in common, so each group of classes gets its parts independently.
    for group in _groups(classes, room):
        needed = {name: amounts[name] for name in group}
        found = _whole(needed, room) or _spread(needed, room)
        if found is None:
            for part, taken in uses.items():
                _take(room, part, {name: -amount for name, amount in taken.items()})
            return None
        for part, taken in found.items():
            _take(room, part, taken)
            uses.setdefault(part, {}).update(taken)
    return uses


def place_guest(spec: GuestSpec) -> Uses:
    """Return the amounts of a guest on each NUMA cell of its node."""
    uses: Uses = {}
    for each in spec.cells:
        used = uses.setdefault(f"numa{each.host_cell}", {})
        own = len(each.cell.pcpus) + len(each.pins.reserved)
        amounts = {"VCPU": len(each.cell.cpus), "PCPU": own, "MEMORY_MB": each.cell.memory_mb}
        for name, amount in amounts.items():
            if amount:
                used[name] = used.get(name, 0) + amount
    return uses


def _groups(names: Iterable[str], room: Uses) -> list[list[str]]:
    """Group classes that occur on a common part."""
    groups: list[tuple[set[str], list[str]]] = []
    for name in names:
        parts, together = {part for part, there in room.items() if name in there}, [name]
        for group in [each for each in groups if each[0] & parts]:
            groups.remove(group)
            parts, together = parts | group[0], group[1] + together
        groups.append((parts, together))
    return [together for _, together in groups]


def _whole(needed: Mapping[str, int], room: Uses) -> Uses | None:
    """Return the emptiest part that can hold all amounts."""
    fitting = [part for part, there in room.items() if all(there.get(name, 0) >= needed[name] for name in needed)]
    if not fitting:
        return None
    best = max(fitting, key=lambda part: sum(room[part][name] for name in needed))
    return {best: {**needed}}


def _spread(needed: Mapping[str, int], room: Uses) -> Uses | None:
    uses: Uses = {}
    for name, amount in needed.items():
        left = amount
        holders = [part for part in room if name in room[part]]
        for part in holders:
            taken = min(left, max(room[part][name], 0))
            left -= taken
            if taken:
                uses.setdefault(part, {})[name] = taken
        if left and name not in SOFT:
            return None
        if left:
            emptiest = max(holders, key=lambda part: room[part][name])
            uses.setdefault(emptiest, {})[name] = uses.get(emptiest, {}).get(name, 0) + left
    return uses


def _take(room: Uses, part: str, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        room[part][name] -= amount
