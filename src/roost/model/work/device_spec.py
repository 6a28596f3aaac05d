"""Selection of a host's PCI devices for Placement, with their resource class and traits."""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from roost.model.switches import NO, YES
from roost.model.work.agent_terms import PciDevice

_PARTS = ("domain", "bus", "slot", "function")
_ADDRESS = re.compile(r"([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})\.([0-9a-fA-F])")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ANY = "*"
_SWITCHES = frozenset({"live_migratable", "remote_managed", "trusted"})
# Keys that are not tags.
_FIELDS = frozenset({"vendor_id", "product_id", "address", "resource_class", "traits", "managed"})
_UNSUPPORTED: Mapping[str, str] = {
    "devname": "use the address of the device",
    "one_time_use": "devices are always reused",
}


class DeviceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's specification of devices of one kind."""

    vendor_id: str = _ANY
    product_id: str = _ANY
    address: tuple[str, ...] = ()  # patterns of domain, bus, slot and function; empty: any
    resource_class: str = ""  # empty: named by vendor and product
    traits: str = ""  # comma-separated
    tags: dict[str, str] = {}  # further tags

    def fits(self, device: PciDevice) -> bool:
        """Return whether a device matches, by its own address or by that of its physical function."""
        ids = ((self.vendor_id, device.vendor_id), (self.product_id, device.product_id))
        if any(required not in (_ANY, actual.lower()) for required, actual in ids):
            return False
        return not self.address or self._is_at(device.address) or self._is_at(device.parent_address)

    def _is_at(self, address: str) -> bool:
        parts = _ADDRESS.fullmatch(address.lower())
        return parts is not None and all(map(re.match, self.address, parts.groups()))


def read_device_specs(text: str) -> tuple[DeviceSpec, ...]:
    """Read device specifications from JSON, an object or a list of objects.

    Raises:
        ValueError: the text is invalid; the message gives the reason.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"device_spec entry is not JSON: {error}, got {text!r}") from None
    return tuple(_read(entry, text) for entry in (document if isinstance(document, list) else [document]))


def _read(entry: object, text: str) -> DeviceSpec:
    if not isinstance(entry, dict):
        raise _wrong(text, "must be an object, or a list of objects")
    for name, why in _UNSUPPORTED.items():
        if name in entry and entry[name] not in (False, "false"):
            raise _wrong(text, f"{name} is not supported: {why}")
    texts = {name: value for name, value in entry.items() if name != "address"}
    for name, value in texts.items():
        if not isinstance(value, (str, bool)) and not (name == "physical_network" and value is None):
            raise _wrong(text, f"{name} must be a text")
    for name in ("vendor_id", "product_id"):
        if not (texts.get(name, _ANY) == _ANY or _HEX.fullmatch(str(texts[name]))):
            raise _wrong(text, f"{name} must be four hexadecimal digits or *")
    return DeviceSpec(
        vendor_id=str(texts.get("vendor_id", _ANY)).lower(),
        product_id=str(texts.get("product_id", _ANY)).lower(),
        address=_read_address(entry.get("address"), text),
        resource_class=str(texts.get("resource_class", "")),
        traits=str(texts.get("traits", "")),
        tags={name: _tag(name, value) for name, value in texts.items() if name not in _FIELDS and value is not None},
    )


def _read_address(address: object, text: str) -> tuple[str, ...]:
    """Read the patterns of an address: parts with ``*`` for any, or a regular expression per part."""
    if address is None or address == _ANY:
        return ()
    if (
        isinstance(address, dict)
        and address.keys() <= {*_PARTS}
        and all(isinstance(pattern, str) for pattern in address.values())
    ):
        return _check_patterns([address.get(part, ".*") for part in _PARTS], text)
    if not isinstance(address, str):
        raise _wrong(text, "address must be a text, or an object with domain, bus, slot and function")
    front, _, function = address.partition(".")
    parts = [part.strip().lower() for part in front.split(":")]
    if len(parts) > len(_PARTS) - 1:
        raise _wrong(text, "address must be domain:bus:slot.function, with * for any")
    parts = [_ANY] * (len(_PARTS) - 1 - len(parts)) + parts + [function.strip().lower()]
    if any(part not in ("", _ANY) and not re.fullmatch("[0-9a-f]{1,8}", part) for part in parts):
        raise _wrong(text, "address must be domain:bus:slot.function, with * for any")
    return tuple(".*" if part in ("", _ANY) else f"0*{part.lstrip('0') or '0'}$" for part in parts)


def _check_patterns(patterns: list[Any], text: str) -> tuple[str, ...]:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise _wrong(text, f"address is not a regular expression: {error}") from None
    return tuple(patterns)


def _tag(name: str, value: object) -> str:
    """Return the value of a tag in the spelling of pools: booleans are true or false."""
    text = str(value)
    if name in _SWITCHES and text.lower() in YES | NO:
        return "true" if text.lower() in YES else "false"
    return text


def _wrong(text: str, problem: str) -> ValueError:
    return ValueError(f"device_spec entry is invalid: {problem}, got {text!r}")
