"""Builds the allocations, pick and claim of an instance on its chosen host."""

from collections.abc import Sequence
from typing import NamedTuple

from roost.engine.candidates.provider_order import ProviderOrder
from roost.engine.candidates.search import search, to_mappings
from roost.engine.candidates.walk import RowCandidate, Take
from roost.engine.columns.state import State
from roost.engine.feasibility.feasibility import Feasibility
from roost.engine.feasibility.first_fit import first_fit
from roost.engine.pci.pools import UNMAPPED
from roost.model.allocation import Mappings
from roost.model.evidence.decision import Decision, Pick
from roost.model.writes import CLASS_BITS, Claim, ConsumerRow, InstanceRow, Place, Refusal
from roost.scheduler.framework.group_slots import place_of
from roost.scheduler.shape.candidate_choice import choose_candidate
from roost.scheduler.shape.shape import Shape

Takes = list[tuple[int, int]]  # inventory id, amount
Allocations = dict[str, dict[str, int]]  # provider uuid -> resource class -> amount


class HostAllocation(NamedTuple):
    """The amounts that one instance takes on a host."""

    takes: Takes
    allocations: Allocations  # the same amounts, by uuids and names
    mappings: Mappings = UNMAPPED  # providers by request group, if a client or a driver needs them


def find_allocation(state: State, shape: Shape, row: int) -> HostAllocation | None:
    """Return the amounts of an instance on a host, from the host's first candidate; None: the host has no candidate.

    The first candidate depends on the costs of the weighers that order providers, if any does.
    """
    if shape.fit.remote_hosts is not None:  # A remote Placement keeps the inventories: no takes here.
        remote = shape.fit.remote_hosts.get(row)
        return None if remote is None else HostAllocation([], remote.allocations, remote.mappings)
    root = state.hosts.provider_row.each[row]
    providers = state.providers
    flat = None if shape.spec.queries else shape.fit.flat_amounts
    if flat is not None and root not in providers.tree:
        first = providers.ids[root] << CLASS_BITS
        takes = [(first | class_id, amount) for class_id, amount in flat]
        return HostAllocation(takes, {providers.uuids[root]: shape.fit.flat_resources})
    order = shape.provider_order(row)
    taken_amounts: Sequence[Take] | None
    mappings = UNMAPPED
    if shape.needs_mappings:
        candidate = (
            choose_candidate(state, shape.spec, row, judges=shape.verdicts.candidate_judges, provider_order=order)
            if shape.spec.queries
            else next(filter(None, (_find_candidate(state, way, row, order=order) for way in shape.fit.ways)), None)
        )
        taken_amounts = None if candidate is None else candidate.takes
        mappings = UNMAPPED if candidate is None else to_mappings(state, candidate)
    else:
        taken_amounts = next(filter(None, (_find_takes(state, way, row, order=order) for way in shape.fit.ways)), None)
    if taken_amounts is None:
        return None
    ids, uuids, name_of = providers.ids, providers.uuids, state.class_ids.name_of
    takes = []
    allocations: Allocations = {}
    for provider_row, class_id, amount in taken_amounts:
        takes.append((ids[provider_row] << CLASS_BITS | class_id, amount))
        allocations.setdefault(uuids[provider_row], {})[name_of(class_id)] = amount
    return HostAllocation(takes, allocations, mappings)


def _find_takes(state: State, way: Feasibility, row: int, *, order: ProviderOrder | None) -> list[Take] | None:
    """Return the amounts that one query takes on a host, None if it does not fit."""
    if way.judge_host(state, row) < len(way):
        return None
    first = first_fit(state, way, row, provider_order=order)
    if first is not None:
        return first.takes
    candidate = _search(state, way, row, order=order)
    return None if candidate is None else list(candidate.takes)


def _find_candidate(state: State, way: Feasibility, row: int, *, order: ProviderOrder | None) -> RowCandidate | None:
    """Return the first candidate of one query on a host, None if it does not fit."""
    if way.judge_host(state, row) < len(way):
        return None
    first = first_fit(state, way, row, provider_order=order)
    if first is not None:
        return RowCandidate(tuple(sorted(first.takes)), first.mappings, state.hosts.provider_row.each[row])
    return _search(state, way, row, order=order)


def _search(state: State, way: Feasibility, row: int, *, order: ProviderOrder | None) -> RowCandidate | None:
    assert way.compiled is not None
    root = state.hosts.provider_row.each[row]
    return next(iter(search(state, way.compiled, anchors=(root,), limit=1, provider_order=order)), None)


def build_pick(state: State, shape: Shape, row: int, *, instance_uuid: str, allocation: HostAllocation) -> Pick:
    """Return the pick of a chosen host or, with an empty uuid, of an alternate."""
    hosts = state.hosts
    mappings = {suffix: tuple(uuids) for suffix, uuids in allocation.mappings.items()}
    return Pick(
        hosts.names[row],
        hosts.nodes[row],
        hosts.facts[row].cell,
        instance_uuid,
        allocation.allocations,
        shape.verdicts.limits(row),
        mappings,
    )


def build_claim(state: State, shape: Shape, row: int, *, consumer: ConsumerRow, takes: Takes) -> Claim:
    """Return the claim of one instance on a host, with the guard of its server group."""
    host_id, number = state.hosts.ids[row], consumer.id
    taken = [(number, inventory_id, amount) for inventory_id, amount in takes]
    group = shape.spec.group
    if group is None:
        return Claim([consumer], taken, [InstanceRow(number, host_id, shape.flavor_id, shape.image_id)])
    places: list[Place] = []
    scope = holder = 0
    place = place_of(
        group, host_id=host_id, rack=state.hosts.facts[row].rack, domain=shape.spec.hint("fault_domain") or ""
    )
    if place is not None:
        places.append(place)
        scope, holder = place.scope, place.holder
    return Claim(
        [consumer],
        taken,
        [InstanceRow(number, host_id, shape.flavor_id, shape.image_id, group.id, scope, holder)],
        places,
    )


def find_lost_hosts(state: State, decision: Decision, refusal: Refusal) -> list[str]:
    """Return the chosen host without enough resources after a lost race; all chosen hosts if it is unknown."""
    hosts = list(decision.hosts)
    provider_row = state.providers.row_of_id.get(refusal.key >> CLASS_BITS) if refusal.table == "inventory" else None
    if len(hosts) < 2 or provider_row is None:
        return hosts
    row = state.hosts.row_of_root.get(state.providers.root.each[provider_row])
    return hosts if row is None else [state.hosts.names[row]]


def merge_claims(claims: list[Claim]) -> Claim:
    """Merge claims into one that succeeds or fails as a whole; add up members of the same group slot."""
    if len(claims) == 1:
        return claims[0]
    places: dict[tuple[int, int, int], Place] = {}
    for claim in claims:
        for place in claim.places:
            key = (place.group_id, place.scope, place.holder)
            previous = places.get(key)
            members = place.members + (previous.members if previous is not None else 0)
            places[key] = Place(*key, members, place.limit)
    return Claim(
        [consumer for claim in claims for consumer in claim.consumers],
        [take for claim in claims for take in claim.takes],
        [instance for claim in claims for instance in claim.instances],
        list(places.values()),
    )
