"""From a request to the question that Placement answers: which providers could hold it?"""

import re
from collections.abc import Iterable
from typing import Literal

import msgspec
import numpy as np

from roost.engine.state import State
from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.names import AMOUNT_MAX, DISABLED_TRAIT, is_resource_class
from roost.model.request import CandidateQuery, Request, ResourceGroup
from roost.scheduler.scopes import aggregates_by_zone, parts

_KEY = re.compile(r"(resources|trait)([A-Za-z0-9_-]{1,64})?:(.*)")


class Translated(msgspec.Struct, frozen=True, kw_only=True):
    """The query for a request, and what was passed over in making it."""

    query: CandidateQuery
    warnings: tuple[str, ...] = ()  # one sentence each


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a query where no provider is known, and what was passed over."""

    group: ResourceGroup  # aggregates alone
    warnings: tuple[str, ...] = ()  # one sentence each


def translate(request: Request, state: State, *, default_zone: str = "nova") -> Translated:
    """Return what a request asks of Placement.

    Amounts come from the flavor, and from extra specs ``resources[S]:CLASS=N``, which replace the
    flavor's and where 0 takes one away. Traits come from ``trait[S]:NAME=required|forbidden`` and from the
    image; further groups from the request itself. An extra spec that cannot be meant is passed over with a
    warning. Names of traits are not judged here: one that no provider has fits nowhere.

    Args:
        request: what is asked for; a comma-separated list of zones means any of them.
        state: read for zones, hosts and whether the trait of disabled hosts is in use.
        default_zone: the zone of hosts that are in no aggregate with a zone.

    Raises:
        BadRequest: two groups have one suffix, a group or the whole request asks nothing, a trait is both
            required and forbidden, two trees are wanted at once, or a zone does not exist.

    Source:
        nova/scheduler/utils.py, ResourceRequest, and nova/scheduler/request_filter.py. A zone that no
        aggregate has is refused here; there it is left to others to notice.
    """
    warnings: list[str] = []
    groups = _of_extra_specs(request.flavor, warnings)
    from_flavor = sum(1 for suffix in groups if suffix)
    _add_requested(groups, request.groups)
    _add_defaults(groups, request.flavor)
    _add_image(groups, request.image)
    main = groups.pop("")
    _add_destination(main, request, state)
    _add_zones(main, parts(request.availability_zone or ""), state, default_zone=default_zone, warnings=warnings)
    policy = _policy(request.flavor, from_flavor, warnings)
    made = [main.group(""), *(group.group(suffix) for suffix, group in groups.items())]
    try:
        query = CandidateQuery(
            groups=tuple(group for group in made if group != ResourceGroup(suffix=group.suffix)),
            group_policy=policy,
            root_forbidden=_forbidden_of_root(state),
        )
    except ValueError as error:
        raise BadRequest(f"the request cannot be asked of Placement: {error}") from None
    return Translated(query=query, warnings=tuple(warnings))


def translate_aggregates(request: Request, state: State, *, default_zone: str = "nova") -> Told:
    """Return what a request asks of hosts whose providers nobody knows: the aggregates they must be in.

    Args:
        request, state, default_zone: as for ``translate``.

    Raises:
        BadRequest: a zone does not exist.
    """
    warnings: list[str] = []
    main = _Draft()
    _add_destination(main, request, state)
    _add_zones(main, parts(request.availability_zone or ""), state, default_zone=default_zone, warnings=warnings)
    asked = [key for key in request.flavor.extra_specs if _KEY.fullmatch(key)]
    if request.image is not None:
        names = request.image.properties
        asked += [name for name in names if name == "traits_required" or name.startswith("trait:")]
    asked += [f"resource group {group.suffix!r}" for group in request.groups]
    if asked:
        warnings.append(f"providers are not known, so these are passed over: {', '.join(asked)}")
    return Told(group=main.group(""), warnings=tuple(warnings))


class _Draft:
    """A resource group that is being put together."""

    __slots__ = ("avoided", "forbidden", "member_of", "required", "resources", "tree")

    def __init__(self, group: ResourceGroup | None = None) -> None:
        group = group or ResourceGroup()
        self.resources = dict(group.resources)
        self.required = list(group.required)
        self.forbidden = set(group.forbidden)
        self.member_of = list(group.member_of)
        self.avoided = set(group.forbidden_aggregates)
        self.tree = group.in_tree

    def require(self, trait: str) -> None:
        wanted = frozenset({trait})
        if wanted not in self.required:
            self.required.append(wanted)

    def add(self, group: ResourceGroup) -> None:
        """Add what another group without suffix asks; its amounts replace."""
        self.resources.update(group.resources)
        self.required.extend(traits for traits in group.required if traits not in self.required)
        self.forbidden |= group.forbidden
        self.member_of.extend(group.member_of)
        self.avoided |= group.forbidden_aggregates
        self.want_tree(group.in_tree)

    def want_tree(self, uuid: str | None) -> None:
        if uuid is not None and self.tree not in (None, uuid):
            raise BadRequest(f"the request wants two trees at once: {self.tree} and {uuid}")
        self.tree = self.tree if uuid is None else uuid

    def group(self, suffix: str) -> ResourceGroup:
        both = sorted(trait for traits in self.required if len(traits) == 1 for trait in traits & self.forbidden)
        if both:
            raise BadRequest(f"a trait is both required and forbidden: {', '.join(both)}")
        return ResourceGroup(
            suffix=suffix,
            resources={name: amount for name, amount in self.resources.items() if amount},
            required=tuple(self.required),
            forbidden=frozenset(self.forbidden),
            member_of=tuple(self.member_of),
            forbidden_aggregates=frozenset(self.avoided),
            in_tree=self.tree,
        )


def _of_extra_specs(flavor: Flavor, warnings: list[str]) -> dict[str, _Draft]:
    groups = {"": _Draft()}
    for key, value in flavor.extra_specs.items():
        found = _KEY.fullmatch(key)
        if found is None:
            continue
        kind, suffix, name = found[1], found[2] or "", found[3]
        if kind == "resources":
            amount = _amount(value)
            if amount is None:
                warnings.append(f"extra spec {key} is passed over: its amount {value!r} is none")
            elif not is_resource_class(name):
                warnings.append(f"extra spec {key} is passed over: {name!r} is no resource class")
            else:
                groups.setdefault(suffix, _Draft()).resources[name] = amount
        elif value == "required":
            groups.setdefault(suffix, _Draft()).require(name)
        elif value == "forbidden":
            groups.setdefault(suffix, _Draft()).forbidden.add(name)
        else:
            warnings.append(f"extra spec {key} is passed over: {value!r} is neither required nor forbidden")
    return groups


def _amount(text: str) -> int | None:
    text = text.strip()
    # More digits than the largest amount has are not worth converting.
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        return None
    amount = int(text)
    return amount if amount <= AMOUNT_MAX else None


def _add_requested(groups: dict[str, _Draft], requested: Iterable[ResourceGroup]) -> None:
    has_main = False
    for group in requested:
        if group == ResourceGroup(suffix=group.suffix):
            raise BadRequest(f"the resource group {group.suffix!r} asks nothing")
        if group.suffix in groups and (group.suffix or has_main):
            raise BadRequest(f"two resource groups have the suffix {group.suffix!r}")
        if group.suffix:
            groups[group.suffix] = _Draft(group)
        else:
            groups[""].add(group)
            has_main = True


def _add_defaults(groups: dict[str, _Draft], flavor: Flavor) -> None:
    """Ask for what the flavor has, where no group asks for that class by name."""
    asked = {name for group in groups.values() for name in group.resources}
    resources = groups[""].resources
    if not asked & {"VCPU", "PCPU"}:
        resources["VCPU"] = flavor.vcpus
    if "MEMORY_MB" not in asked:
        resources["MEMORY_MB"] = flavor.memory_mb
    if "DISK_GB" not in asked:
        # Swap is in MiB, and a part of a GiB takes a whole one.
        resources["DISK_GB"] = flavor.root_gb + flavor.ephemeral_gb - (-flavor.swap // 1024)


def _add_image(groups: dict[str, _Draft], image: Image | None) -> None:
    if image is None:
        return
    listed = image.properties.get("traits_required", "")
    for trait in re.findall(r"\w+", listed):
        groups[""].require(trait)
    for name, value in image.properties.items():
        if name.startswith("trait:") and value == "required":
            groups[""].require(name.removeprefix("trait:"))


def _add_destination(main: _Draft, request: Request, state: State) -> None:
    destination = request.destination
    if destination is not None:
        main.member_of.extend(destination.aggregates)
        main.avoided |= destination.forbidden_aggregates
    hosts: tuple[str, ...]
    nodes: tuple[str, ...]
    if destination is not None and (destination.host or destination.node):
        hosts = (destination.host,) if destination.host else ()
        nodes = (destination.node,) if destination.node else ()
    else:
        hosts, nodes = request.force_hosts, request.force_nodes
    if not hosts and not nodes:
        return
    table = state.hosts
    rows = table.rows_named(hosts).tolist() if hosts else range(len(table))
    found = [row for row in rows if table.alive.view[row] and (not nodes or table.nodes[row] in nodes)]
    # One tree can be searched alone. None, or several, are told apart by name when hosts are judged; so are
    # requests whose groups all have a suffix, since a tree wanted of nothing cannot be served.
    if len(found) == 1 and any(main.resources.values()):
        main.want_tree(state.providers.uuids[table.provider_row.view[found[0]]])


def _add_zones(main: _Draft, zones: list[str], state: State, *, default_zone: str, warnings: list[str]) -> None:
    """Restrict to aggregates of any of the zones."""
    if not zones:
        return
    name_of = state.aggregates.name_of
    aggregates = {zone: {name_of(each) for each in found} for zone, found in aggregates_by_zone(state).items()}
    known = [zone for zone in zones if zone in aggregates]
    unknown = [zone for zone in zones if zone not in aggregates and zone != default_zone]
    if known:
        if len(known) < len(zones):
            others = ", ".join(zone for zone in zones if zone not in aggregates)
            warnings.append(f"no aggregate makes up availability zone {others}; only the others are searched")
        main.member_of.append(frozenset().union(*(aggregates[zone] for zone in known)))
    elif unknown:
        raise BadRequest(f"there is no availability zone {', '.join(unknown)}")
    else:
        # The default zone is all hosts that no aggregate puts into another.
        main.avoided.update(*aggregates.values())


def _policy(flavor: Flavor, from_flavor: int, warnings: list[str]) -> Literal["none", "isolate"]:
    policy = flavor.extra_specs.get("group_policy")
    if policy == "isolate":
        return "isolate"
    if policy is None:
        if from_flavor > 1:
            warnings.append("the flavor has several resource groups and no group_policy; none is taken")
    elif policy != "none":
        warnings.append(f"extra spec group_policy is passed over: {policy!r} is neither none nor isolate")
    return "none"


def _forbidden_of_root(state: State) -> frozenset[str]:
    trait = state.trait_ids.id_of(DISABLED_TRAIT)
    if trait is None or not np.any(state.traits.wearing(trait)):
        return frozenset()
    return frozenset({DISABLED_TRAIT})
