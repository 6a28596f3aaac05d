"""From a flavor to its device requests, and to the request groups for these devices."""

from collections.abc import Container, Iterable, Iterator

import msgspec

from roost.errors import BadRequest
from roost.model.devices.device_names import class_of_device, traits_of_device
from roost.model.devices.pci import PciNumaPolicy, PciRequest, PciTraits, read_alias
from roost.model.names import AMOUNT_MAX, GROUP_SUFFIX, is_resource_class
from roost.model.request import Request, ResourceGroup
from roost.model.settings.roost_settings import Pci
from roost.scheduler.framework.hw_settings import resolve_value

SPEC = "pci_passthrough:alias"
_POLICIES: dict[str, PciNumaPolicy] = {
    "required": "required",
    "legacy": "legacy",
    "preferred": "preferred",
    "socket": "socket",
}
# Upper bound on groups, one per device; no host has more devices.
_GROUPS_MAX = 1_000


class PciAliases:
    """The PCI aliases of the settings."""

    def __init__(self, settings: Pci) -> None:
        self._by_name: dict[str, PciRequest] = {}
        for text in settings.alias:
            alias = read_alias(text)
            name = alias.name.strip()
            previous = self._by_name.get(name)
            earlier = () if previous is None else previous.alternatives
            self._by_name[name] = PciRequest(
                alternatives=(*earlier, alias.request_traits), numa_policy=alias.numa_policy, name=name
            )

    def requests(self, request: Request) -> tuple[PciRequest, ...]:
        """Return the device requests of a request: those of its flavor, then its own.

        The n-th request of a flavor, from 0, has the identity ``pci<n>``. A NUMA policy of flavor or image replaces
        those of the aliases. A request with the name of an alias replaces the flavor's request for this alias, as in
        messages of Nova, which contain all requests.

        Raises:
            BadRequest: an alias is unknown, a count is invalid, or flavor and image contradict each other.
        """
        text = request.flavor.extra_specs.get(SPEC)
        policy = numa_policy(request)
        given = {each.name for each in request.pci_requests if each.source == "flavor" and each.name}
        from_flavor = () if text is None else tuple(self._flavor_requests(text, policy, given=given))
        return (*from_flavor, *request.pci_requests)

    def _flavor_requests(
        self, text: str, policy: PciNumaPolicy | None, *, given: Container[str]
    ) -> Iterator[PciRequest]:
        for number, part in enumerate(text.split(",")):
            name, colon, count = (word.strip() for word in part.partition(":"))
            if name in given:
                continue
            alias = self._by_name.get(name)
            if not colon or not count.isdecimal() or not 1 <= int(count[:20]) <= AMOUNT_MAX:
                raise BadRequest(f"extra spec {SPEC}={text[:70]} must be alias:count[,alias:count…] with counts from 1")
            if alias is None:
                raise BadRequest(f"extra spec {SPEC} names {name[:70]!r}, which is not an alias in the settings")
            yield msgspec.structs.replace(
                alias, count=int(count), numa_policy=policy or alias.numa_policy, request_id=f"pci{number}"
            )


def numa_policy(request: Request) -> PciNumaPolicy | None:
    """Return the required NUMA affinity of devices in flavor or image, if any.

    Raises:
        BadRequest: the policy does not exist, or flavor and image contradict each other.
    """
    policy = resolve_value(request, "pci_numa_affinity_policy", allowed=_POLICIES)
    return None if policy is None else _POLICIES[policy]


def device_groups(requests: Iterable[PciRequest]) -> Iterator[ResourceGroup]:
    """Yield the request groups for the devices of flavors: ``<request_id>-<number>``, one per device.

    Raises:
        BadRequest: the request has alternatives, which Placement does not support, or too many devices,
            or an invalid resource class.
    """
    for request in requests:
        if request.source != "flavor":
            continue
        if len(request.alternatives) != 1:
            raise BadRequest(f"Placement does not support alternatives, as in {request.name!r}")
        if request.count > _GROUPS_MAX:
            raise BadRequest(f"Placement cannot serve {request.count} devices, the maximum is {_GROUPS_MAX}")
        pool_traits = request.alternatives[0]
        resource_class = _class_of(pool_traits)
        traits = pool_traits.get("traits")
        required = tuple(frozenset({trait}) for trait in traits_of_device(traits if isinstance(traits, str) else ""))
        for number in range(request.count):
            suffix = f"{request.request_id}-{number}"
            if not request.request_id or not GROUP_SUFFIX.fullmatch(suffix):
                raise BadRequest(f"{request.request_id[:70]!r} cannot begin the suffix of a resource group")
            yield ResourceGroup(suffix=suffix, resources={resource_class: 1}, required=required)


def _class_of(traits: PciTraits) -> str:
    name = class_of_device(
        str(traits.get("resource_class") or ""),
        vendor_id=str(traits.get("vendor_id")),
        product_id=str(traits.get("product_id")),
    )
    if not is_resource_class(name):
        raise BadRequest(f"{name[:70]!r} is not a resource class of devices")
    return name
