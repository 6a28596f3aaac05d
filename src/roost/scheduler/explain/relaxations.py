"""Relaxations: single changes of a request that reduce its requirements."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from roost.engine.columns.state import State
from roost.model.evidence.explain import ChangeKind
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.names import amount_text
from roost.model.request import CandidateQuery, Request, ResourceGroup
from roost.scheduler.rule_support.scopes import aggregates_by_zone, split_names

_replace = msgspec.structs.replace
_ZONES_MAX = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """A changed request, and a description of the change."""

    kind: ChangeKind
    text: str
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedAmount:
    """An amount of a class in one or several equal request groups."""

    resource_class: str
    amount: int
    suffixes: tuple[str, ...]  # suffixes of the groups


def query_amounts(query: CandidateQuery) -> list[RequestedAmount]:
    """Return the amounts of a query; equal groups count as one."""
    suffixes_by_key: dict[tuple[object, ...], list[str]] = {}
    for group in query.groups:
        suffixes_by_key.setdefault((*group.requirements, group.suffix == ""), []).append(group.suffix)
    by_suffix = {group.suffix: group for group in query.groups}
    return [
        RequestedAmount(resource_class=name, amount=amount, suffixes=tuple(suffixes))
        for suffixes in suffixes_by_key.values()
        for name, amount in sorted(by_suffix[suffixes[0]].resources.items())
    ]


def reduce_amount(request: Request, requested: RequestedAmount, amount: int) -> Relaxation:
    """Return a request with a smaller amount of one class."""
    edited = request
    for suffix in requested.suffixes:
        edited = _with_amount(edited, suffix, resource_class=requested.resource_class, amount=amount)
    before = (
        f"{requested.amount:,}"
        if len(requested.suffixes) == 1
        else f"{requested.amount:,} in each of {len(requested.suffixes)}"
    )
    return Relaxation(
        kind="amount", text=f"{amount_text(requested.resource_class, amount)} instead of {before}", request=edited
    )


def _with_amount(request: Request, suffix: str, *, resource_class: str, amount: int) -> Request:
    for at, group in enumerate(request.groups):
        if group.suffix == suffix and resource_class in group.resources:
            reduced = _replace(group, resources={**group.resources, resource_class: amount})
            return _replace(request, groups=(*request.groups[:at], reduced, *request.groups[at + 1 :]))
    key = f"resources{suffix}:{resource_class}"
    flavor = request.flavor
    if key in flavor.extra_specs:
        return _replace(request, flavor=_replace(flavor, extra_specs={**flavor.extra_specs, key: str(amount)}))
    return _replace(request, flavor=_shrink_flavor(flavor, resource_class, amount))


def _shrink_flavor(flavor: Flavor, resource_class: str, amount: int) -> Flavor:
    if resource_class == "VCPU":
        return _replace(flavor, vcpus=amount)
    if resource_class == "MEMORY_MB":
        return _replace(flavor, memory_mb=amount)
    if resource_class == "PCPU":
        emulator_cpus = 1 if flavor.extra_specs.get("hw:emulator_threads_policy") == "isolate" else 0
        return _replace(flavor, vcpus=max(amount - emulator_cpus, 0))
    if resource_class != "DISK_GB":
        return flavor
    root = min(flavor.root_gb, amount)
    ephemeral = min(flavor.ephemeral_gb, amount - root)
    return _replace(
        flavor, root_gb=root, ephemeral_gb=ephemeral, swap=min(flavor.swap, (amount - root - ephemeral) * 1024)
    )


def fewer_groups(
    request: Request, query: CandidateQuery, limits: Mapping[tuple[str, ...], int] | None = None
) -> Iterator[Relaxation]:
    """Yield requests without one, two, … of several equal groups, down to one group.

    Args:
        request: the request.
        query: its query to Placement.
        limits: upper bounds on equal groups on one host, by their suffixes.
    """
    families: dict[tuple[object, ...], list[str]] = {}
    for group in query.groups:
        if group.suffix:
            families.setdefault(group.requirements, []).append(group.suffix)
    for suffixes in families.values():
        resources = next(group.resources for group in query.groups if group.suffix == suffixes[0])
        amounts = (
            " and ".join(amount_text(name, amount) for name, amount in sorted(resources.items())) or "no resources"
        )
        edited = request
        first = min(len(suffixes) - 1, (limits or {}).get(tuple(suffixes), len(suffixes)))
        for suffix in suffixes[first + 1 :]:
            edited = _without_group(edited, suffix)
        for count in range(first, 0, -1):
            edited = _without_group(edited, suffixes[count])
            yield Relaxation(
                kind="groups", text=f"{count} instead of {len(suffixes)} groups of {amounts}", request=edited
            )


def _without_group(request: Request, suffix: str) -> Request:
    groups = tuple(group for group in request.groups if group.suffix != suffix)
    specs = {
        key: value
        for key, value in request.flavor.extra_specs.items()
        if not key.startswith((f"resources{suffix}:", f"trait{suffix}:"))
    }
    return _replace(request, groups=groups, flavor=_replace(request.flavor, extra_specs=specs))


def without_traits(request: Request, _: State) -> Iterator[Relaxation]:
    """Yield requests without one trait, required or forbidden."""
    traits_by_key: dict[tuple[str, str, str], None] = {}  # key in extra specs, name, value
    for key, value in request.flavor.extra_specs.items():
        if key.startswith("trait") and value in ("required", "forbidden"):
            traits_by_key[key, key.partition(":")[2], value] = None
    for name in _image_traits(request.image):
        traits_by_key[f"trait:{name}", name, "required"] = None
    for key, name, value in traits_by_key:
        edited = _without_specs(request, [key])
        if key == f"trait:{name}" and value == "required" and edited.image is not None:
            edited = _replace(edited, image=_without_trait(edited.image, name))
        yield Relaxation(kind="trait", text=f"without {value} trait {name}", request=edited)
    for at, group in enumerate(request.groups):
        for number, traits in enumerate(group.required):
            reduced = _replace(group, required=group.required[:number] + group.required[number + 1 :])
            text = f"without required trait {' or '.join(sorted(traits))}"
            yield from _with_group(request, at, reduced, kind="trait", text=text)
        for trait in sorted(group.forbidden):
            reduced = _replace(group, forbidden=group.forbidden - {trait})
            yield from _with_group(request, at, reduced, kind="trait", text=f"without forbidden trait {trait}")


def _image_traits(image: Image | None) -> list[str]:
    if image is None:
        return []
    required = image.properties.get("traits_required", "").replace(",", " ").split()
    single = [key.removeprefix("trait:") for key, value in image.properties.items() if value == "required"]
    return [name for name in (*required, *single) if f"trait:{name}" in image.properties or name in required]


def _without_trait(image: Image, name: str) -> Image:
    properties = {key: value for key, value in image.properties.items() if key != f"trait:{name}"}
    listed = properties.get("traits_required", "").replace(",", " ").split()
    if name in listed:
        properties["traits_required"] = ",".join(each for each in listed if each != name)
    return _replace(image, properties=properties)


def _with_group(
    request: Request, at: int, group: ResourceGroup, *, kind: ChangeKind, text: str
) -> Iterator[Relaxation]:
    if group != ResourceGroup(suffix=group.suffix):
        groups = (*request.groups[:at], group, *request.groups[at + 1 :])
        yield Relaxation(kind=kind, text=text, request=_replace(request, groups=groups))


def _without_specs(request: Request, keys: Iterable[str]) -> Request:
    removed = frozenset(keys)
    specs = {key: value for key, value in request.flavor.extra_specs.items() if key not in removed}
    return _replace(request, flavor=_replace(request.flavor, extra_specs=specs))


def _with_image(request: Request, image: Image, keys: Iterable[str]) -> Request:
    removed = frozenset(keys)
    properties = {key: value for key, value in image.properties.items() if key not in removed}
    return _replace(request, image=_replace(image, properties=properties))


def other_zones(request: Request, state: State) -> Iterator[Relaxation]:
    """Yield requests for every other zone, and for any zone."""
    if not request.availability_zone:
        return
    zones = aggregates_by_zone(state).keys() - set(split_names(request.availability_zone))
    for zone in sorted(zones)[:_ZONES_MAX]:
        text = f"zone {zone} instead of {request.availability_zone}"
        yield Relaxation(kind="zone", text=text, request=_replace(request, availability_zone=zone))
    text = f"any zone instead of {request.availability_zone}"
    yield Relaxation(kind="zone", text=text, request=_replace(request, availability_zone=None))


def without_aggregates(request: Request, _: State) -> Iterator[Relaxation]:
    """Yield requests without required and forbidden aggregates, except those of zones."""
    destination = request.destination
    if destination is not None and (destination.aggregates or destination.forbidden_aggregates):
        unrestricted = _replace(destination, aggregates=(), forbidden_aggregates=frozenset())
        edited = _replace(request, destination=unrestricted)
        yield Relaxation(kind="aggregates", text="without the destination's aggregates", request=edited)
    for at, group in enumerate(request.groups):
        if group.member_of or group.forbidden_aggregates:
            reduced = _replace(group, member_of=(), forbidden_aggregates=frozenset())
            text = f"without the aggregates of resource group {group.suffix or 'without suffix'}"
            yield from _with_group(request, at, reduced, kind="aggregates", text=text)


def without_server_group(request: Request, _: State) -> Iterator[Relaxation]:
    """Yield the request without its server group."""
    joined = request.group_joined
    if joined is not None:
        hints = {name: value for name, value in request.hints.items() if name != "group"}
        edited = _replace(request, group=None, hints=hints)
        yield Relaxation(kind="server_group", text=f"outside server group {joined}", request=edited)


def without_named_hosts(request: Request, _: State) -> Iterator[Relaxation]:
    """Yield requests without named destinations, and without ignored hosts."""
    destination = request.destination
    is_bound = destination is not None and (destination.host or destination.node or destination.cell)
    if request.force_hosts or request.force_nodes or is_bound:
        unrestricted = None if destination is None else _replace(destination, host=None, node=None, cell=None)
        edited = _replace(request, force_hosts=(), force_nodes=(), destination=unrestricted)
        yield Relaxation(kind="named_hosts", text="on any host instead of those named", request=edited)
    if request.ignore_hosts:
        edited = _replace(request, ignore_hosts=())
        yield Relaxation(kind="named_hosts", text="including the ignored hosts", request=edited)


def other_images(request: Request, _: State) -> Iterator[Relaxation]:
    """Yield requests without one of the image's properties."""
    image = request.image
    if image is not None:
        for key, value in image.properties.items():
            if not key.startswith("trait"):
                text = f"an image without {key}={value}"
                yield Relaxation(kind="image", text=text, request=_with_image(request, image, [key]))


def without_capabilities(request: Request, _: State) -> Iterator[Relaxation]:
    """Yield requests without one extra spec, except amounts, traits and policies."""
    for key, value in request.flavor.extra_specs.items():
        if not key.startswith(("resources", "trait", "group_policy")):
            edited = _without_specs(request, [key])
            yield Relaxation(kind="capability", text=f"without extra spec {key}={value}", request=edited)
