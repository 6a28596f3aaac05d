"""Image properties in normalized form."""

import re

from roost.model.image import OLD_NAMES, Image

_ARCHITECTURES = {
    "amd64": "x86_64",
    "i386": "i686",
    "i486": "i686",
    "i586": "i686",
    "x86": "i686",
    "x86_32": "i686",
    "x86_32p": "i686",
}
# The architectures of images and hosts, in normalized form.
_ALL_ARCHITECTURES = frozenset(
    {
        "aarch64",
        "alpha",
        "armv6",
        "armv7b",
        "armv7l",
        "cris",
        "i686",
        "ia64",
        "lm32",
        "m68k",
        "microblaze",
        "microblazeel",
        "mips",
        "mips64",
        "mips64el",
        "mipsel",
        "openrisc",
        "parisc",
        "parisc64",
        "ppc",
        "ppc64",
        "ppc64le",
        "ppcemb",
        "ppcle",
        "s390",
        "s390x",
        "sh4",
        "sh4eb",
        "sparc",
        "sparc64",
        "unicore32",
        "x86_64",
        "xtensa",
        "xtensaeb",
    }
)
_HYPERVISORS = {"xapi": "xen", "powervm": "phyp"}
_VM_MODES = {"pv": "xen", "hv": "hvm", "baremetal": "hvm"}
_PREDICATE = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*([0-9]+(?:\.[0-9]+)*)\s*")


def image_property(image: Image | None, name: str) -> str | None:
    """Return an image's property by its current name, even if the image uses the old name."""
    if image is None:
        return None
    value = image.properties.get(name)
    old = OLD_NAMES.get(name)
    return image.properties.get(old) if value is None and old is not None else value


def architecture(name: str | None) -> str | None:
    """Normalize the name of a processor architecture.

    >>> architecture("AMD64"), architecture("i586"), architecture("aarch64")
    ('x86_64', 'i686', 'aarch64')
    """
    return _normalize(name, _ARCHITECTURES)


def is_architecture(name: str) -> bool:
    """Return whether a processor architecture of this name exists, in any spelling.

    >>> is_architecture("AMD64"), is_architecture("pdp11")
    (True, False)
    """
    return architecture(name) in _ALL_ARCHITECTURES


def hypervisor(name: str | None) -> str | None:
    """Normalize the name of a hypervisor type."""
    return _normalize(name, _HYPERVISORS)


def vm_mode(name: str | None) -> str | None:
    """Normalize the name of a virtual machine mode."""
    return _normalize(name, _VM_MODES)


def _normalize(name: str | None, aliases: dict[str, str]) -> str | None:
    if name is None:
        return None
    lower = name.lower()
    return aliases.get(lower, lower)


def matches_version(version: tuple[int, ...], predicates: str) -> bool:
    """Return whether a version satisfies all predicates of a comma-separated list; an invalid predicate fails.

    >>> matches_version((6, 2, 0), ">=6.0, <7"), matches_version((6, 2, 0), "6.2")
    (True, False)
    """
    return all(_matches_predicate(version, predicate) for predicate in predicates.split(","))


def _matches_predicate(version: tuple[int, ...], predicate: str) -> bool:
    parts = _PREDICATE.fullmatch(predicate)
    if parts is None:
        return False
    operand = tuple(int(part) for part in parts[2].split("."))
    length = max(len(version), len(operand))
    left = version + (0,) * (length - len(version))
    right = operand + (0,) * (length - len(operand))
    match parts[1]:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "==":
            return left == right
        case _:
            return left != right
