"""Checks the compute nodes of Nova against the providers, aggregates and traits of a Placement."""

from collections.abc import Iterable, Iterator

from roost.model.names import DISABLED_TRAIT, SHARING_TRAIT
from roost.nova.check.check_finding import Finding, Level, count_of, shorten_names
from roost.nova.check.placement_picture import OWNER_TRAIT, PlacementPicture
from roost.nova.database.nova_fleet import ComputeNode, FleetChanges, NovaAggregate

# From this version of all services nova-compute on, Nova requires the trait OWNER_NOVA of hosts.
_OWNER_VERSION = 73
# Aggregates in findings of their own.
_AGGREGATES_MAX = 10
_RESTART = "restart nova-compute there: at its start, it corrects the trait"


def placement_finding(level: Level, found: str, advice: str = "") -> Finding:
    """Return a finding about Placement."""
    return Finding(level=level, part="placement", found=found, advice=advice)


def check_placement(fleet: FleetChanges, picture: PlacementPicture, *, subject: str) -> Iterator[Finding]:
    """Yield the differences between Nova's databases and a Placement.

    Args:
        subject: name of the Placement in findings.
    """
    if not picture.names:
        yield placement_finding("error", f"{subject} is empty", "import first: roost import placement")
        return
    nodes = {each.uuid: each for each in fleet.computes}
    known = {uuid: node for uuid, node in nodes.items() if uuid in picture.names}
    yield placement_finding(
        "ok", f"{subject} is readable: {len(known):,} of {count_of(len(nodes), 'compute node')} have their provider"
    )
    yield from _check_missing([node for uuid, node in nodes.items() if uuid not in known], has_known=bool(known))
    yield from _check_extra(picture, nodes, is_complete=not fleet.silent_cells)
    yield from _check_aggregates(fleet.aggregates or (), known, picture)
    yield from _check_disabled(known, picture)
    yield from _check_owner(known, picture, service_version_min=fleet.service_version_min)


def _check_missing(missing: list[ComputeNode], *, has_known: bool) -> Iterator[Finding]:
    if missing:
        names = shorten_names(each.node for each in missing)
        yield placement_finding(
            "warning" if has_known else "error",
            f"{count_of(missing, 'compute node')} without a provider: {names}",
            "import first, or restart nova-compute there; until then, these hosts are not chosen",
        )


def _check_extra(picture: PlacementPicture, nodes: dict[str, ComputeNode], *, is_complete: bool) -> Iterator[Finding]:
    """Yield root providers of no compute node, such as those of deleted hosts; sharing providers are right."""
    extra = picture.names.keys() - nodes.keys() - picture.having(SHARING_TRAIT)
    if extra and is_complete:  # A silent cell has nodes that were not read.
        names = shorten_names(picture.names[each] for each in extra)
        found = f"{count_of(len(extra), 'root provider')} without a compute node: {names}"
        yield placement_finding("warning", found, "delete those of deleted hosts; Roost never chooses them")


def _check_aggregates(
    aggregates: Iterable[NovaAggregate], known: dict[str, ComputeNode], picture: PlacementPicture
) -> Iterator[Finding]:
    """Compare the hosts of aggregates, among the nodes with a provider. Roost uses Placement's members."""
    nodes_of_host: dict[str, set[str]] = {}
    for uuid, node in known.items():
        nodes_of_host.setdefault(node.host, set()).add(uuid)
    different = []
    count = 0
    for aggregate in aggregates:
        count += 1
        in_nova = {uuid for host in aggregate.hosts for uuid in nodes_of_host.get(host, ())}
        in_placement = picture.members.get(aggregate.uuid, frozenset()) & known.keys()
        parts = [
            f"{place} has also {shorten_names(known[uuid].host for uuid in uuids)}"
            for place, uuids in (("Nova", in_nova - in_placement), ("Placement", in_placement - in_nova))
            if uuids
        ]
        if parts:
            different.append(f"aggregate {aggregate.name}: {'; '.join(parts)}")
    advice = "Roost uses Placement's members: run nova-manage placement sync_aggregates"
    for found in different[:_AGGREGATES_MAX]:
        yield placement_finding("warning", found, advice)
    if len(different) > _AGGREGATES_MAX:
        found = f"{count_of(len(different) - _AGGREGATES_MAX, 'more aggregate')} with different members"
        yield placement_finding("warning", found, advice)
    if count and not different:
        yield placement_finding("ok", f"{count_of(count, 'aggregate')} with the same members in Nova and Placement")


def _check_disabled(known: dict[str, ComputeNode], picture: PlacementPicture) -> Iterator[Finding]:
    """Compare the trait of disabled services with the services."""
    disabled = {uuid for uuid, node in known.items() if node.facts.is_disabled}
    marked = picture.having(DISABLED_TRAIT) & known.keys()
    for uuids, found, effect in (
        (disabled - marked, f"disabled without the trait {DISABLED_TRAIT}", "Roost does not choose them anyway"),
        (marked - disabled, f"with the trait {DISABLED_TRAIT} but not disabled", "they are not chosen"),
    ):
        if uuids:
            names = shorten_names(known[uuid].host for uuid in uuids)
            finding = f"{count_of(len(uuids), 'compute node')} {found}: {names}"
            yield placement_finding("warning", finding, f"{_RESTART}; {effect}")


def _check_owner(
    known: dict[str, ComputeNode], picture: PlacementPicture, *, service_version_min: int
) -> Iterator[Finding]:
    """Say where the rule for ``OWNER_NOVA`` has another effect than in Nova.

    Source:
        nova/scheduler/request_filter.py, owner_nova: Nova requires the trait once all services are new enough.
    """
    if service_version_min < _OWNER_VERSION:
        return
    lacking = known.keys() - picture.having(OWNER_TRAIT)
    if lacking:
        names = shorten_names(known[uuid].host for uuid in lacking)
        found = f"{count_of(len(lacking), 'compute node')} without the trait {OWNER_TRAIT}: {names}"
        yield placement_finding("warning", found, f"{_RESTART}; Nova does not choose them, Roost does")
