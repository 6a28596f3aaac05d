"""The script of the fake driver: nodes with their resources, and faults, in TOML."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from roost.errors import BadFile, first_line, quote_value, unreadable_file
from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.names import AMOUNT_MAX, is_resource_class, is_trait
from roost.model.provider import Inventory
from roost.model.work.agent_terms import PciDevice

Layout = Literal["flat", "gpus", "numa", "renamed", "shared"]
Action = Literal[
    "start",
    "resources",
    "update_provider_tree",
    "metrics",
    "spawn",
    "destroy",
    "power",
    "rebuild",
    "prepare",
    "send_disk",
    "finish",
    "discard",
    "settle",
    "live_migrate",
    "inspect",
    "save",
    "saved_images",
    "drop_saved_image",
]
Kind = Literal["failed", "aborted", "hang", "crash", "slow", "unready"]

_Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_DEFAULT_VCPUS, _DEFAULT_MEMORY_MB = 16, 65_536


def _check_names(resource_classes: Iterable[str], traits: Iterable[str]) -> None:
    for resource_class in resource_classes:
        if not is_resource_class(resource_class):
            raise ValueError(f"{quote_value(resource_class)} is not a resource class")
    for trait in traits:
        if not is_trait(trait):
            raise ValueError(f"{quote_value(trait)} is not a trait")


def _check_once(problem: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{problem} {quote_value(name)}")


class Gpu(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A physical GPU."""

    name: Annotated[_Name, Meta(description="Last part of its provider's name, such as pci_0000_06_00_0.")]
    vgpus: Annotated[_Amount, Meta(description="Number of its vGPUs; 0: it has no provider.")]
    resource_class: Annotated[str, Meta(description="Resource class of its vGPUs.")] = "VGPU"
    traits: Annotated[tuple[str, ...], Meta(description="Traits of its provider, in layout gpus.")] = ()


class Child(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider below a node, in every layout."""

    name: Annotated[_Name, Meta(description="Its name; {host} and {node} are replaced by the names of host and node.")]
    parent: Annotated[str, Meta(description="Name of its parent provider; empty: the node.")] = ""
    inventories: Annotated[dict[str, Inventory], Meta(description="Its inventories, by resource class.")] = {}
    traits: Annotated[tuple[str, ...], Meta(description="Its traits.")] = ()


class FakeNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node and its resources."""

    name: Annotated[_Name, Meta(description="Its name; {host} is replaced by the name of the host.")] = "{host}"
    vcpus: Annotated[_Amount | None, Meta(description="Shared processors; left out: those of its cells, or 16.")] = None
    memory_mb: Annotated[_Amount | None, Meta(description="Memory, MiB; left out: that of its cells, or 65536.")] = None
    local_gb: Annotated[_Amount, Meta(description="Disk, GiB.")] = 500
    inventories: Annotated[
        dict[str, Inventory], Meta(description="Further inventories of its root provider, by resource class.")
    ] = {}
    pieces: Annotated[
        dict[str, tuple[_Name, ...]],
        Meta(description="Names of single resources of its root provider, by resource class."),
    ] = {}
    traits: Annotated[tuple[str, ...], Meta(description="Traits of its root provider.")] = ()
    cell: Annotated[tuple[NumaCell, ...], Meta(description="Its NUMA cells.")] = ()
    gpu: Annotated[tuple[Gpu, ...], Meta(description="Its physical GPUs.")] = ()
    pci: Annotated[
        tuple[PciDevice, ...], Meta(description="Its PCI devices; those of type-VF are also SRIOV_NET_VF.")
    ] = ()
    provider: Annotated[tuple[Child, ...], Meta(description="Further providers.")] = ()
    metrics: Annotated[dict[str, float], Meta(description="Its measurements, by name.")] = {}
    stats: Annotated[dict[str, str], Meta(description="Its statistics, for filters on capabilities.")] = {}
    cpu_info: Annotated[dict[str, Any], Meta(description="Facts of its processors.")] = {}
    hypervisor_type: Annotated[str, Meta(description="Type of hypervisor, such as QEMU.")] = "fake"
    hypervisor_version: Annotated[_Amount, Meta(description="Version of the hypervisor: 1002003 is 1.2.3.")] = 1_000_000
    supported_instances: Annotated[
        tuple[tuple[str, str, str], ...],
        Meta(description="Architecture, hypervisor type and mode of each kind of guest."),
    ] = (("x86_64", "fake", "hvm"),)

    def __post_init__(self) -> None:
        _check_names((*self.inventories, *self.pieces), self.traits)
        for gpu in self.gpu:
            _check_names([gpu.resource_class], gpu.traits)
        for child in self.provider:
            _check_names(child.inventories, child.traits)
        _check_once("two GPUs have the name", [each.name for each in self.gpu])
        _check_once("two providers have the name", [each.name for each in self.provider])
        _check_once("two pieces have the name", [name for names in self.pieces.values() for name in names])
        _check_once("two PCI devices have the address", [each.address for each in self.pci])
        own = {"VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", *(each.resource_class for each in self.gpu)}
        for field, classes, reserved_names in (
            ("inventories", self.inventories, own),
            ("pieces", self.pieces, own | {*self.inventories}),
        ):
            if duplicates := sorted(reserved_names & {*classes}):
                raise ValueError(f"{field} must not name {duplicates[0]}, which the node's own resources define")
        _ = self.topology  # Its constructor checks that cells have distinct numbers.
        for name, given, counted in (
            ("vcpus", self.vcpus, sum(len(each.cpus) for each in self.cell)),
            ("memory_mb", self.memory_mb, sum(each.memory_mb for each in self.cell)),
        ):
            if self.cell and given not in (None, counted):
                raise ValueError(f"{name} must be {counted}, the sum of its cells, or be left out, got {given}")

    @property
    def topology(self) -> NumaTopology | None:
        """Its NUMA cells; None: it has none."""
        return NumaTopology(cells=self.cell) if self.cell else None

    @property
    def vcpu_total(self) -> int:
        """Its shared processors."""
        counted = sum(len(each.cpus) for each in self.cell) if self.cell else _DEFAULT_VCPUS
        return counted if self.vcpus is None else self.vcpus

    @property
    def memory_total_mb(self) -> int:
        """Its memory, MiB."""
        counted = sum(each.memory_mb for each in self.cell) if self.cell else _DEFAULT_MEMORY_MB
        return counted if self.memory_mb is None else self.memory_mb

    def on(self, host: str) -> "FakeNode":
        """Return this node on a host, with its names there."""
        name = self.name.replace("{host}", host)
        children = tuple(
            replace(each, name=_expand_name(each.name, host, name), parent=_expand_name(each.parent, host, name))
            for each in self.provider
        )
        return replace(self, name=name, provider=children)


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault."""

    action: Annotated[Action, Meta(description="The method of the driver.")]
    kind: Annotated[Kind, Meta(description="Its effect.")] = "failed"
    share: Annotated[
        Annotated[float, Meta(ge=0, le=1)],
        Meta(description="Share of the calls that it strikes: 0.05 is 5 of 100."),
    ] = 1.0
    times: Annotated[_Amount | None, Meta(description="Maximum number of failures; left out: no limit.")] = None
    host: Annotated[str, Meta(description="Pattern of host names; * stands for any text.")] = "*"
    delay_s: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Seconds before its effect; left out: 1 if slow, a day if hanging, else 0."),
    ] = None
    message: Annotated[str, Meta(description="Text of the error; empty: a sentence with action and host.")] = ""


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that the fake driver simulates."""

    layout: Annotated[Layout, Meta(description="Distribution of a node's resources over providers.")] = "flat"
    renames: Annotated[
        dict[str, str], Meta(description="Resource classes of root inventories, and their names in layout renamed.")
    ] = {}
    can_live_migrate: Annotated[bool, Meta(description="Whether running guests can move.")] = True
    node: Annotated[tuple[FakeNode, ...], Meta(description="The nodes of each host.")] = (FakeNode(),)
    fault: Annotated[tuple[Fault, ...], Meta(description="Faults; the first matching one strikes.")] = ()

    def __post_init__(self) -> None:
        _check_once("two nodes have the name", [each.name for each in self.node])
        _check_names((*self.renames, *self.renames.values()), ())
        _check_once("two classes are renamed to", [*self.renames.values()])
        for node in self.node:
            if reserved_names := sorted({*self.renames.values()} & {*node.inventories}):
                raise ValueError(f"a class is renamed to {reserved_names[0]}, which node {node.name} has already")
            outside_cells = [
                each.address for each in node.pci if each.dev_type == "type-VF" and not _is_near(each, node)
            ]
            if self.layout == "numa" and not node.cell:
                raise ValueError(f"layout numa needs cells, and node {node.name} has none")
            if self.layout == "numa" and outside_cells:
                raise ValueError(
                    f"in layout numa a virtual function needs a cell of its node, {outside_cells[0]} has none"
                )


def read_script(path: str) -> Script:
    """Return the script of a file.

    Raises:
        BadFile: the file cannot be read, is not TOML, or has invalid content.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable_file(path, error) from None
    except UnicodeDecodeError as error:
        raise BadFile(path, f"cannot be read: {first_line(error)}") from None
    try:
        return msgspec.convert(tomllib.loads(text), Script)
    except tomllib.TOMLDecodeError as error:
        raise BadFile(path, f"is not TOML: {first_line(error)}") from None
    except msgspec.ValidationError as error:
        problem, _, place = str(error).replace("`", "").partition(" - at $.")
        raise BadFile(path, f"{place}: {problem}" if place else problem) from None


def _expand_name(name: str, host: str, node: str) -> str:
    return name.replace("{host}", host).replace("{node}", node)


def _is_near(device: PciDevice, node: FakeNode) -> bool:
    return device.numa_node in {cell.id for cell in node.cell}
