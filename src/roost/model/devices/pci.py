"""Requests for PCI devices: aliases of the settings, and requests of instances."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.names import AMOUNT_MAX
from roost.model.switches import NO, YES

# Required NUMA affinity of devices to the processors and memory of the instance.
PciNumaPolicy = Literal["required", "legacy", "preferred", "socket"]
# Required fields and tags of a pool, with their values.
PciTraits = dict[str, str | tuple[str, ...] | None]

_Hex = Annotated[str, Meta(pattern="^[0-9a-fA-F]{4}$(?!\n)")]
# Permitted values of the fields, for error messages.
_VALUE_TEXTS = {
    **dict.fromkeys(("vendor_id", "product_id"), "four hexadecimal digits"),
    "device_type": "type-PCI, type-PF or type-VF",
    "numa_policy": "required, legacy, preferred or socket",
    "capability_type": "pci",
}
_Name = Annotated[str, Meta(min_length=1, max_length=256)]
_SWITCHES = {
    **dict.fromkeys(YES, "true"),
    **dict.fromkeys(NO, "false"),
}


class PciAlias(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name by which flavors request PCI devices; aliases with equal names are alternatives."""

    name: _Name
    capability_type: Literal["pci"] = "pci"
    vendor_id: _Hex | None = None
    product_id: _Hex | None = None
    device_type: Literal["type-PCI", "type-PF", "type-VF"] | None = None
    numa_policy: PciNumaPolicy = "legacy"
    resource_class: Annotated[str, Meta(max_length=255)] = ""  # of the devices in Placement
    traits: str = ""  # of the devices' providers, comma-separated
    live_migratable: str | None = None

    def __post_init__(self) -> None:
        if self.live_migratable is not None and self.live_migratable.lower() not in _SWITCHES:
            raise ValueError("live_migratable must be true or false")
        if not (self.vendor_id and self.product_id) and not self.resource_class:
            raise ValueError("vendor_id and product_id, or resource_class, must be given")

    @property
    def request_traits(self) -> PciTraits:
        """The required fields and tags of the devices."""
        traits = {
            "vendor_id": self.vendor_id,
            "product_id": self.product_id,
            "dev_type": self.device_type,
            "resource_class": self.resource_class or None,
            "traits": self.traits or None,
            "live_migratable": None if self.live_migratable is None else _SWITCHES[self.live_migratable.lower()],
        }
        return {name: value for name, value in traits.items() if value is not None}


class PciRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of an instance for devices of one kind."""

    count: Annotated[int, Meta(ge=1, le=AMOUNT_MAX)] = 1
    alternatives: tuple[PciTraits, ...]  # any of these kinds
    numa_policy: PciNumaPolicy = "legacy"
    source: Literal["flavor", "port"] = "flavor"  # origin; only requests of flavors go to Placement
    request_id: str = ""  # prefix of the suffixes of its resource groups
    name: str = ""  # of the alias; empty: no alias

    def describe(self) -> str:
        """Describe the request in words."""
        if self.name:
            return f"{self.count} {self.name}"
        kinds = " or ".join(
            " ".join(f"{name}={value}" for name, value in sorted(traits.items())) for traits in self.alternatives
        )
        return f"{self.count} of {kinds}"


def read_alias(text: str) -> PciAlias:
    """Read an alias from JSON.

    Raises:
        ValueError: the text is not a valid alias; the message gives the reason.
    """
    try:
        return msgspec.json.decode(text, type=PciAlias)
    except (msgspec.DecodeError, RecursionError) as error:
        problem, _, key = str(error).replace("`", "").partition(" - at $.")
        if key in _VALUE_TEXTS:
            problem = f"must be {_VALUE_TEXTS[key]}"
        detail = f"{key} {problem}" if key else problem
        raise ValueError(f"alias entry is invalid: {detail}, got {text!r}") from None


def check_aliases(texts: tuple[str, ...]) -> None:
    """Check alias texts: each must be valid, and entries with equal names must agree.

    Raises:
        ValueError: an entry is invalid, or two entries with the same name differ in device_type or numa_policy.
    """
    first: dict[str, PciAlias] = {}
    for text in texts:
        alias = read_alias(text)
        earlier = first.setdefault(alias.name.strip(), alias)
        for key in ("device_type", "numa_policy"):
            if getattr(earlier, key) != getattr(alias, key):
                raise ValueError(
                    f"alias entry has another {key} than an earlier entry with the same name, got {text!r}"
                )
