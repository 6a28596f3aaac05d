"""Request groups from flavor, image and request, and the defaults of the flavor."""

import re
from typing import Literal

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.names import AMOUNT_MAX, is_resource_class
from roost.model.request import Request, ResourceGroup
from roost.scheduler.query.draft import Draft, DraftGroup

KEY = re.compile(r"(resources|trait)([A-Za-z0-9_-]{1,64})?:(.*)")


def add_extra_specs(draft: Draft, flavor: Flavor) -> None:
    """Add the extra specs ``resources[S]:CLASS=N`` and ``trait[S]:NAME=required|forbidden``.

    Invalid ones are ignored with a warning.
    """
    for key, value in flavor.extra_specs.items():
        parts = KEY.fullmatch(key)
        if parts is None:
            continue
        kind, suffix, name = parts[1], parts[2] or "", parts[3]
        if kind == "resources":
            amount = _amount(value)
            if amount is None:
                draft.warnings.append(f"extra spec {key} is ignored: its amount {value!r} is invalid")
            elif not is_resource_class(name):
                draft.warnings.append(f"extra spec {key} is ignored: {name!r} is not a resource class")
            else:
                draft.group(suffix).resources[name] = amount
        elif value == "required":
            draft.group(suffix).require(name)
        elif value == "forbidden":
            draft.group(suffix).forbidden.add(name)
        else:
            draft.warnings.append(f"extra spec {key} is ignored: {value!r} is neither required nor forbidden")
    draft.policy = _policy(flavor, sum(1 for suffix in draft.groups if suffix), draft.warnings)


def _amount(text: str) -> int | None:
    # Longer numbers exceed the largest amount anyway.
    if len(text.strip()) > 20:
        return None
    try:
        amount = int(text)
    except ValueError:
        return None
    return amount if 0 <= amount <= AMOUNT_MAX else None


def _policy(flavor: Flavor, group_count: int, warnings: list[str]) -> Literal["none", "isolate"]:
    policy = flavor.extra_specs.get("group_policy")
    if policy == "isolate":
        return "isolate"
    if policy is None:
        if group_count > 1:
            warnings.append("the flavor has several resource groups and no group_policy; the default is none")
    elif policy != "none":
        warnings.append(f"extra spec group_policy is ignored: {policy!r} is neither none nor isolate")
    return "none"


def add_image_traits(main: DraftGroup, image: Image | None) -> None:
    """Add the traits that an image requires, by ``traits_required`` and ``trait:NAME=required``."""
    if image is None:
        return
    for trait in re.findall(r"\w+", image.properties.get("traits_required", "")):
        main.require(trait)
    for name, value in image.properties.items():
        if name.startswith("trait:") and value == "required":
            main.require(name.removeprefix("trait:"))


def add_request_groups(draft: Draft, request: Request) -> None:
    """Add the request's own groups.

    Raises:
        BadRequest: a group is empty, or two groups have the same suffix.
    """
    has_main = False
    for group in request.groups:
        if group == ResourceGroup(suffix=group.suffix):
            raise BadRequest(f"the resource group {group.suffix!r} is empty")
        if group.suffix:
            draft.add(group)
        elif has_main:
            raise BadRequest("two resource groups have the suffix ''")
        else:
            draft.main.add(group)
            has_main = True


def add_defaults(draft: Draft, request: Request) -> None:
    """Add the flavor's amount of each class that no group names."""
    names = {name for group in draft.groups.values() for name in group.resources}
    flavor, resources = request.flavor, draft.main.resources
    if not names & {"VCPU", "PCPU"}:
        resources["VCPU"] = flavor.vcpus
    if "MEMORY_MB" not in names:
        resources["MEMORY_MB"] = flavor.memory_mb
    if "DISK_GB" not in names:
        resources["DISK_GB"] = disk_gb(request) - (-flavor.swap // 1024)  # Swap is in MiB, rounded up to GiB.


def disk_gb(request: Request) -> int:
    """Return an instance's disks without swap, in GiB; a boot volume uses no disk of the host."""
    flavor = request.flavor
    return flavor.ephemeral_gb + (0 if request.is_bfv else flavor.root_gb)
