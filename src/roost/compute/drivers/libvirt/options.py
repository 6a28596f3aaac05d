"""The options of the libvirt driver, parsed from text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from roost.compute.driver import read_options
from roost.compute.drivers.libvirt.host import read_processors
from roost.errors import BadSettings


class LibvirtTexts(msgspec.Struct, frozen=True, kw_only=True):
    """The options as text."""

    uri: str = "qemu:///system"
    state: str = "/var/lib/roost/guests"
    images: str = ""
    cpu_shared_set: str = ""
    cpu_dedicated_set: str = ""
    pci_devices: str = ""
    mdev_types: str = ""
    network: str = ""
    virt_type: str = ""
    shutdown_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0


class LibvirtOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the libvirt driver."""

    uri: str  # URI of libvirt
    state: Path  # folder of disks; hosts that share it can exchange guests
    images: Path  # folder of images
    cpu_shared_set: frozenset[int] | None = None  # shared processors; None: see ``divide_cpus``
    cpu_dedicated_set: frozenset[int] | None = None  # dedicated processors
    pci_devices: tuple[tuple[str, str], ...] = ()  # (vendor, product) for instances; product * is any
    mdev_types: tuple[str, ...] = ()  # types of mediated devices for vGPUs, the preferred one first
    network: str = ""  # libvirt's network of the guests' cards; empty: no cards
    virt_type: str = ""  # domain type; empty: the best of the host
    shutdown_s: float = 60.0  # time limit of a guest's own shutdown


def read_libvirt_options(options: Mapping[str, str]) -> LibvirtOptions:
    """Parse options.

    Raises:
        BadSettings: an option is unknown or invalid.
    """
    texts = read_options("libvirt", LibvirtTexts, options)
    state = Path(texts.state).absolute()
    return LibvirtOptions(
        uri=texts.uri,
        state=state,
        images=Path(texts.images).absolute() if texts.images else state / "images",
        cpu_shared_set=_parse_processors("cpu_shared_set", texts.cpu_shared_set),
        cpu_dedicated_set=_parse_processors("cpu_dedicated_set", texts.cpu_dedicated_set),
        pci_devices=tuple(_parse_device_kind(each) for each in _parts(texts.pci_devices)),
        mdev_types=tuple(_parts(texts.mdev_types)),
        network=texts.network,
        virt_type=texts.virt_type,
        shutdown_s=texts.shutdown_s,
    )


def _parts(text: str) -> list[str]:
    return [part for each in text.split(",") if (part := each.strip())]


def _parse_processors(name: str, text: str) -> frozenset[int] | None:
    if not text.strip():
        return None
    try:
        return read_processors(text)
    except ValueError as error:
        raise BadSettings(f"driver libvirt, option {name}", str(error)) from None


def _parse_device_kind(text: str) -> tuple[str, str]:
    vendor, _, product = text.lower().partition(":")
    if not (_is_hex(vendor) and (product == "*" or _is_hex(product))):
        problem = f"{text!r} is not vendor:product with four hexadecimal digits each, or vendor:*"
        raise BadSettings("driver libvirt, option pci_devices", problem)
    return vendor, product


def _is_hex(text: str) -> bool:
    return len(text) == 4 and all(letter in "0123456789abcdef" for letter in text)
