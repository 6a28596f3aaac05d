"""From a chosen host to what the instance holds there."""

from roost.engine.candidates import search
from roost.engine.state import State
from roost.model.decision import Pick
from roost.model.journal import CLASS_BITS, Claim, ConsumerRow, InstanceRow, Place
from roost.scheduler.pipeline import Shape
from roost.scheduler.places import place_of

Takes = list[tuple[int, int]]  # inventory id, amount
Allocations = dict[str, dict[str, int]]  # provider uuid -> resource class -> amount


def takes_on(state: State, shape: Shape, row: int) -> tuple[Takes, Allocations] | None:
    """Return what an instance of this shape takes on a host: its first candidate there; None if it has none."""
    root = state.hosts.provider_row.data.item(row)
    flat = shape.fit.flat_amounts
    if flat is not None and root not in state.providers.tree:
        first = state.providers.ids[root] << CLASS_BITS
        return [(first | class_id, amount) for class_id, amount in flat], {
            state.providers.uuids[root]: shape.fit.flat_resources
        }
    assert shape.fit.compiled is not None
    candidate = next(iter(search(state, shape.fit.compiled, anchors=(root,), limit=1)), None)
    if candidate is None:
        return None
    ids, uuids, name_of = state.providers.ids, state.providers.uuids, state.class_ids.name_of
    takes: Takes = []
    allocations: Allocations = {}
    for provider_row, class_id, amount in candidate.takes:
        takes.append((ids[provider_row] << CLASS_BITS | class_id, amount))
        allocations.setdefault(uuids[provider_row], {})[name_of(class_id)] = amount
    return takes, allocations


def pick_on(state: State, row: int, *, instance_uuid: str, allocations: Allocations) -> Pick:
    """Return a chosen host, or with an empty uuid an alternate, as the caller sees it."""
    hosts = state.hosts
    return Pick(hosts.names[row], hosts.nodes[row], hosts.facts[row].cell, instance_uuid, allocations)


def claim_on(
    state: State, shape: Shape, row: int, *, consumer: ConsumerRow, takes: Takes, flavor_id: int, image_id: int
) -> Claim:
    """Return the claim of one instance on a host, with the guard of its server group's rule."""
    host_id = state.hosts.ids[row]
    group = shape.spec.group
    places: list[Place] = []
    group_id = scope = holder = 0
    if group is not None:
        group_id = group.id
        place = place_of(
            group,
            host_id=host_id,
            rack=state.hosts.facts[row].rack,
            domain=shape.spec.hint("fault_domain") or "",
        )
        if place is not None:
            places.append(place)
            scope, holder = place.scope, place.holder
    number = consumer.id
    return Claim(
        [consumer],
        [(number, inventory_id, amount) for inventory_id, amount in takes],
        [InstanceRow(number, host_id, flavor_id, image_id, group_id, scope, holder)],
        places,
    )


def merged(claims: list[Claim]) -> Claim:
    """Return several claims as one: all or nothing, places of one kind counted together."""
    if len(claims) == 1:
        return claims[0]
    places: dict[tuple[int, int, int], Place] = {}
    for claim in claims:
        for place in claim.places:
            key = (place.group_id, place.scope, place.holder)
            known = places.get(key)
            members = place.members + (known.members if known is not None else 0)
            places[key] = Place(*key, members, place.limit)
    return Claim(
        [consumer for claim in claims for consumer in claim.consumers],
        [take for claim in claims for take in claim.takes],
        [instance for claim in claims for instance in claim.instances],
        list(places.values()),
    )
