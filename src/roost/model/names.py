"""Names of resource classes, traits, hosts and uuids, with their syntax."""

import hashlib
import re
from functools import cache

import os_resource_classes
import os_traits

SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"
DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"
GROUP_SUFFIX = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UUID = re.compile(r"[0-9a-fA-F]{32}")
_UUID_START = re.compile(r"[0-9a-fA-F]{1,32}")
_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]{1,248}")
_CONSUMER_TYPE = re.compile(r"[A-Z0-9_]{1,255}")

# Upper bounds of amounts and ratios in the Placement API.
AMOUNT_MAX = 2_147_483_647
HOST_NAME_MAX = 255
RATIO_MAX = 3.40282e38


@cache
def standard_resource_classes() -> tuple[str, ...]:
    """Return the standard resource classes in their fixed order (os-resource-classes)."""
    return tuple(os_resource_classes.STANDARDS)


@cache
def standard_traits() -> frozenset[str]:
    """Return the standard traits (os-traits)."""
    return frozenset(os_traits.get_traits())


def is_resource_class(name: str) -> bool:
    """Return whether ``name`` is a standard class or a well-formed custom one."""
    return name in standard_resource_classes() or _CUSTOM.fullmatch(name) is not None


def is_trait(name: str) -> bool:
    """Return whether ``name`` is a standard trait or a well-formed custom one."""
    return _CUSTOM.fullmatch(name) is not None or name in standard_traits()


def is_consumer_type(name: str) -> bool:
    """Return whether ``name`` is a well-formed consumer type."""
    return _CONSUMER_TYPE.fullmatch(name) is not None


def is_text(text: str, *, length_max: int) -> bool:
    r"""Return whether every database can store a text: no NUL, no lone surrogate, and not too long.

    >>> [is_text(text, length_max=4) for text in ("näh", "12345", "a\0b", "\ud800")]
    [True, False, False, False]
    """
    if len(text) > length_max or "\0" in text:
        return False
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def is_host_name(text: str) -> bool:
    r"""Return whether a text is a valid name of a host with an agent.

    >>> [is_host_name(text) for text in ("node-1.rack", "", "h 7", "h\n7", "näh")]
    [True, False, False, False, False]
    """
    return 0 < len(text) <= HOST_NAME_MAX and text.isascii() and text.isprintable() and " " not in text


def uuid_bytes(text: str) -> bytes | None:
    """Return the 16 bytes of a uuid, with or without dashes, braces and prefix; None for an invalid uuid."""
    digits = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    return bytes.fromhex(digits) if _UUID.fullmatch(digits) else None


def valid_uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of a uuid that is known to be valid, such as a stored one."""
    found = uuid_bytes(text)
    assert found is not None, text
    return found


def uuid_range(text: str) -> tuple[bytes, bytes] | None:
    """Return the first and the last uuid that begin with a text; None for a text with which no uuid begins.

    >>> uuid_range("C0FFEE00-c") == uuid_range("c0ffee00c")
    True
    >>> [uuid_range(text) for text in ("", "c0fg", "c" * 33)]
    [None, None, None]
    """
    digits = text.replace("-", "")
    if not _UUID_START.fullmatch(digits):
        return None
    return bytes.fromhex(digits.ljust(32, "0")), bytes.fromhex(digits.ljust(32, "f"))


def uuid_form(text: str) -> str:
    """Return a uuid in canonical form; other texts stay unchanged.

    >>> uuid_form("C0FFEE00C0FFEE00C0FFEE00C0FFEE00")
    'c0ffee00-c0ff-ee00-c0ff-ee00c0ffee00'
    """
    body = uuid_bytes(text)
    return text if body is None else uuid_text(body)


def is_uuid_form(text: str) -> bool:
    """Return whether a text is a uuid in canonical form.

    >>> is_uuid_form("c0ffee00-c0ff-ee00-c0ff-ee00c0ffee00"), is_uuid_form("C0FFEE00C0FFEE00C0FFEE00C0FFEE00")
    (True, False)
    """
    return uuid_bytes(text) is not None and uuid_form(text) == text


def uuid_text(body: bytes) -> str:
    """Return the canonical form of 16 bytes."""
    digits = body.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_UNITS = {"MEMORY_MB": "MiB memory", "DISK_GB": "GiB disk", "VCPU": "VCPU", "PCPU": "PCPU"}


def derive_uuid(*words: str) -> str:
    """Return a uuid of version 8, derived from words."""
    body = bytearray(hashlib.blake2b("\0".join(words).encode(), digest_size=16).digest())
    body[6] = 0x80 | body[6] & 0x0F
    body[8] = 0x80 | body[8] & 0x3F
    return uuid_text(bytes(body))


def amount_text(resource_class: str, amount: int) -> str:
    """Return an amount for people, with the unit of its class.

    >>> amount_text("MEMORY_MB", 2048)
    '2,048 MiB memory'
    """
    return f"{amount:,} {_UNITS.get(resource_class, resource_class)}"
