"""A host from libvirt's XML: processors, memory nodes, pages, and kinds of guests."""

from collections.abc import Iterable
from functools import cache
from xml.etree.ElementTree import Element, ParseError, fromstring, tostring

import msgspec

from roost.errors import BadSettings, DriverNotReady, first_line, quote_value
from roost.model.devices.numa import MemoryPages, NumaCell
from roost.model.names import standard_traits

_KIB = {"KiB": 1, "MiB": 1024, "GiB": 1024**2, "TiB": 1024**3}
# Features whose traits have other names; all others match by name.
_TRAIT_NAMES = {
    "pni": ("SSE3",),
    "fma": ("FMA3",),
    "pclmuldq": ("CLMUL",),
    "pclmulqdq": ("CLMUL",),
    "aes": ("AESNI",),
    "sha-ni": ("SHA",),
    "hle": ("TSX",),
    "rtm": ("TSX",),
    "lzcnt": ("ABM",),
}
_PREFIX = {"x86_64": "HW_CPU_X86_", "i686": "HW_CPU_X86_", "aarch64": "HW_CPU_AARCH64_"}
_VENDORS = {"Intel": "INTEL_", "AMD": "AMD_"}  # some traits include the vendor
_THREADS = "HW_CPU_HYPERTHREADING"


class HostCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The capabilities of a host."""

    arch: str
    model: str = ""  # of its processors
    vendor: str = ""
    features: frozenset[str] = frozenset()  # of its processors, besides those of the model
    cpu: str = ""  # XML of its processors, from which all features can be expanded
    sockets: int = 0  # 0: unknown
    cores: int = 0  # of a socket
    threads: int = 0  # of a core
    cells: tuple[NumaCell, ...] = ()  # with all processors shared
    kinds: tuple[tuple[str, str, str], ...] = ()  # of guests: (architecture, type of domain, type of system)

    def domain_type(self, requested: str = "") -> str:
        """Return the domain type of guests: the requested one, else the best for the host's architecture.

        Raises:
            BadSettings: the host has no domain type, or not the requested one.
        """
        found = sorted({kind for arch, kind, system in self.kinds if arch == self.arch and system == "hvm"})
        if not found:
            raise BadSettings("driver libvirt", f"the host runs no guests of its architecture, {self.arch}")
        if requested and requested not in found:
            raise BadSettings("driver libvirt, option virt_type", f"the host runs {', '.join(found)}, not {requested}")
        return requested or ("kvm" if "kvm" in found else found[0])

    @property
    def cpu_info(self) -> dict[str, object]:
        """The reported facts of the processors."""
        topology = {"sockets": self.sockets, "cores": self.cores, "threads": self.threads, "cells": len(self.cells)}
        return {
            "arch": self.arch,
            "model": self.model,
            "vendor": self.vendor,
            "features": sorted(self.features),
            "topology": topology,
        }


class Encryption(msgspec.Struct, frozen=True, kw_only=True):
    """A host's encryption of guest memory: AMD's SEV."""

    contexts: int  # maximum number of encrypted guests
    bit: int  # position of the encryption bit in an address
    reduced_bits: int  # number of address bits that guests lose


def read_xml(text: str) -> Element:
    """Return the root of libvirt's XML.

    Raises:
        DriverNotReady: it is malformed.
    """
    try:
        return fromstring(text)  # noqa: S314  # Libvirt is trusted, and expat limits the expansion of entities.
    except ParseError as error:
        raise DriverNotReady(f"libvirt returned malformed XML: {first_line(error)}") from None


def read_capabilities(text: str) -> HostCapabilities:
    """Return a host's capabilities.

    Raises:
        DriverNotReady: they are malformed.
    """
    try:
        return _capabilities(read_xml(text))
    except (ValueError, LookupError) as error:
        raise DriverNotReady(f"libvirt returned malformed capabilities: {first_line(error)}") from None


def read_encryption(text: str) -> Encryption | None:
    """Return a host's encryption of guest memory, from the domain capabilities; None: it has none.

    Raises:
        DriverNotReady: they are malformed.
    """
    found = read_xml(text).find("features/sev")
    if found is None or found.get("supported") != "yes":
        return None
    try:
        numbers = [int(found.findtext(name, "0")) for name in ("maxGuests", "cbitpos", "reducedPhysBits")]
    except ValueError as error:
        raise DriverNotReady(f"libvirt returned malformed encryption capabilities: {first_line(error)}") from None
    contexts, bit, reduced_bits = numbers
    return Encryption(contexts=contexts, bit=bit, reduced_bits=reduced_bits) if contexts > 0 else None


def features_of(cpu: Element) -> frozenset[str]:
    """Return the features in a description of processors."""
    return frozenset(
        each.get("name", "") for each in cpu.iterfind("feature") if each.get("policy", "require") != "disable"
    )


def cpu_traits(capabilities: HostCapabilities) -> frozenset[str]:
    """Return the standard traits of a host's processors."""
    prefix, vendor = _PREFIX.get(capabilities.arch, ""), _VENDORS.get(capabilities.vendor, "")
    known, found = list_cpu_traits(), set()
    for feature in capabilities.features if prefix else ():
        plain = feature.upper().translate(str.maketrans("", "", "-_."))
        word = feature.upper().replace("-", "_")
        words = (*_TRAIT_NAMES.get(feature, ()), plain, word, vendor + word, f"AVX512{plain}")
        found |= {prefix + each for each in words} & known
    if any(len(threads) > 1 for cell in capabilities.cells for threads in cell.siblings):
        found.add(_THREADS)
    return frozenset(found)


@cache
def list_cpu_traits() -> frozenset[str]:
    """Return all standard traits of processors, present or not."""
    prefixes = tuple({*_PREFIX.values()})
    return frozenset(name for name in standard_traits() if name.startswith(prefixes) or name == _THREADS)


def divide_cpus(
    cells: Iterable[NumaCell], *, shared: frozenset[int] | None, dedicated: frozenset[int] | None
) -> tuple[NumaCell, ...]:
    """Return memory nodes with their processors divided into shared and dedicated ones.

    Args:
        cells: with all processors shared.
        shared, dedicated: numbers of processors. If both are None, all are shared; else None is an empty set.

    Raises:
        BadSettings: the host lacks a processor, or a processor is in both sets.
    """
    cells = tuple(cells)
    known = {each for cell in cells for each in cell.cpus}
    for name, numbers in (("cpu_shared_set", shared), ("cpu_dedicated_set", dedicated)):
        if missing := sorted((numbers or frozenset()) - known):
            raise BadSettings(f"driver libvirt, option {name}", f"the host has no processor {_format_ranges(missing)}")
    if both := sorted((shared or frozenset()) & (dedicated or frozenset())):
        raise BadSettings("driver libvirt, option cpu_dedicated_set", f"cpu_shared_set also has {_format_ranges(both)}")
    if shared is None and dedicated is None:
        return cells
    return tuple(
        msgspec.structs.replace(
            cell,
            cpus=tuple(each for each in cell.cpus if each in (shared or ())),
            pcpus=tuple(each for each in cell.cpus if each in (dedicated or ())),
        )
        for cell in cells
    )


def read_processors(text: str) -> frozenset[int]:
    """Return the processors in a text such as ``0-7,^3,16``.

    Raises:
        ValueError: it is malformed; the message quotes the part.
    """
    named: set[int] = set()
    left_out: set[int] = set()
    for part in (each.strip() for each in text.split(",")):
        bare = part.removeprefix("^")
        first, dash, last = bare.partition("-")
        ends = [each.strip() for each in ((first, last) if dash else (first, first))]
        # Ranges are bounded, so that a typing error does not exhaust the memory.
        if not all(each.isascii() and each.isdigit() and len(each) <= 5 for each in ends):
            raise ValueError(f"{quote_value(part)} is not a set of processors")
        numbers = range(int(ends[0]), int(ends[1]) + 1)
        if not numbers:
            raise ValueError(f"{quote_value(part)} ends before it begins")
        (left_out if part != bare else named).update(numbers)
    return frozenset(named - left_out)


def kib_of(element: Element | None) -> int:
    """Return an amount of memory in KiB; 0 for a missing element."""
    if element is None:
        return 0
    return int(element.text or 0) * _KIB[element.get("unit", "KiB")]


def _capabilities(root: Element) -> HostCapabilities:
    cpu = root.find("host/cpu")
    if cpu is None:
        raise DriverNotReady("libvirt does not report the processors of the host")
    topology = cpu.find("topology")
    counts = {} if topology is None else topology.attrib
    kinds = [
        (arch.get("name", ""), domain.get("type", ""), guest.findtext("os_type", ""))
        for guest in root.iterfind("guest")
        for arch in guest.iterfind("arch")
        for domain in arch.iterfind("domain")
    ]
    return HostCapabilities(
        arch=cpu.findtext("arch", ""),
        model=cpu.findtext("model", ""),
        vendor=cpu.findtext("vendor", ""),
        features=features_of(cpu),
        cpu=tostring(cpu, encoding="unicode").strip(),
        sockets=int(counts.get("sockets", 0)),
        cores=int(counts.get("cores", 0)),
        threads=int(counts.get("threads", 0)),
        cells=tuple(_cell(each) for each in root.iterfind("host/topology/cells/cell")),
        kinds=tuple(kinds),
    )


def _cell(element: Element) -> NumaCell:
    processors = [
        each for each in element.iterfind("cpus/cpu") if each.get("siblings")
    ]  # Offline processors report none.
    siblings = {tuple(sorted(read_processors(each.get("siblings", "")))) for each in processors}
    sockets = {each.get("socket_id") for each in processors}
    socket = sockets.pop() if len(sockets) == 1 else None
    pages = [
        MemoryPages(size_kb=int(each.get("size", 0)) * _KIB[each.get("unit", "KiB")], total=int(each.text or 0))
        for each in element.iterfind("pages")
        if int(each.text or 0)
    ]
    return NumaCell(
        id=int(element.get("id", 0)),
        cpus=tuple(sorted(int(each.get("id", 0)) for each in processors)),
        memory_mb=kib_of(element.find("memory")) // 1024,
        siblings=tuple(sorted(siblings)) if any(len(each) > 1 for each in siblings) else (),
        mempages=tuple(pages),
        socket=None if socket is None else int(socket),
    )


def _format_ranges(numbers: Iterable[int]) -> str:
    """Return sorted numbers as ranges, since a typing error may produce thousands."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ", ".join("-".join(map(str, each)) for each in ranges)
