"""PCI devices as they are asked for: aliases of the settings, and what an instance wants of them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.names import AMOUNT_MAX
from roost.model.switches import NO, YES

# How near the devices must be to the processors and the memory of the instance.
PciNumaPolicy = Literal["required", "legacy", "preferred", "socket"]
# What devices must be: names of a pool's fields and tags, with the value of each.
PciTraits = dict[str, str | tuple[str, ...] | None]

_Hex = Annotated[str, Meta(pattern="^[0-9a-fA-F]{4}$(?!\n)")]
# What a key must be, where its type says it to programs alone.
_MEANT = {
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
    """A name by which flavors ask for devices; entries of one name are alternatives."""

    name: _Name
    capability_type: Literal["pci"] = "pci"
    vendor_id: _Hex | None = None
    product_id: _Hex | None = None
    device_type: Literal["type-PCI", "type-PF", "type-VF"] | None = None
    numa_policy: PciNumaPolicy = "legacy"
    resource_class: Annotated[str, Meta(max_length=255)] = ""  # that Placement counts the devices by
    traits: str = ""  # of the devices' providers, names divided by commas
    live_migratable: str | None = None

    def __post_init__(self) -> None:
        if self.live_migratable is not None and self.live_migratable.lower() not in _SWITCHES:
            raise ValueError("live_migratable must mean yes or no")
        if not (self.vendor_id and self.product_id) and not self.resource_class:
            raise ValueError("vendor_id and product_id, or resource_class, must be given")

    @property
    def request_traits(self) -> PciTraits:
        """What devices must be to have this name."""
        told = {
            "vendor_id": self.vendor_id,
            "product_id": self.product_id,
            "dev_type": self.device_type,
            "resource_class": self.resource_class or None,
            "traits": self.traits or None,
            "live_migratable": None if self.live_migratable is None else _SWITCHES[self.live_migratable.lower()],
        }
        return {name: value for name, value in told.items() if value is not None}


class PciRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Devices that an instance wants, all of one kind."""

    count: Annotated[int, Meta(ge=1, le=AMOUNT_MAX)] = 1
    alternatives: tuple[PciTraits, ...]  # any of these kinds
    numa_policy: PciNumaPolicy = "legacy"
    source: Literal["flavor", "port"] = "flavor"  # who wants them; Placement is asked for those of flavors alone
    request_id: str = ""  # begins the suffixes of its resource groups
    name: str = ""  # of the alias, if it has one

    def describe(self) -> str:
        """Return what it wants, in words."""
        if self.name:
            return f"{self.count} {self.name}"
        kinds = " or ".join(
            " ".join(f"{name}={value}" for name, value in sorted(wanted.items())) for wanted in self.alternatives
        )
        return f"{self.count} of {kinds}"


def read_alias(text: str) -> PciAlias:
    """Return the alias that a JSON text says.

    Raises:
        ValueError: the text says none; the message says why.
    """
    try:
        return msgspec.json.decode(text, type=PciAlias)
    except (msgspec.DecodeError, RecursionError) as error:
        problem, _, key = str(error).replace("`", "").partition(" - at $.")
        if key in _MEANT:
            problem = f"must be {_MEANT[key]}"
        told = f"{key} {problem}" if key else problem
        raise ValueError(f"alias entry is none: {told}, got {text!r}") from None


def check_aliases(texts: tuple[str, ...]) -> None:
    """See that texts say aliases, and that entries of one name agree.

    Raises:
        ValueError: one says none, or two of a name differ in device_type or numa_policy.
    """
    first: dict[str, PciAlias] = {}
    for text in texts:
        alias = read_alias(text)
        known = first.setdefault(alias.name.strip(), alias)
        for key in ("device_type", "numa_policy"):
            if getattr(known, key) != getattr(alias, key):
                raise ValueError(f"alias entry has another {key} than one of the same name before it, got {text!r}")
