"""Microversions of the Placement API, named by their features."""

from typing import NamedTuple


class Version(NamedTuple):
    """A microversion."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


def _v(minor: int) -> Version:
    return Version(1, minor)


OLDEST = _v(0)
AGGREGATES = _v(1)
RESOURCE_CLASSES = _v(2)
PROVIDERS_BY_MEMBERSHIP = _v(3)
PROVIDERS_BY_RESOURCES = _v(4)
DELETE_INVENTORIES = _v(5)
TRAITS = _v(6)
RESOURCE_CLASS_IDEMPOTENT = _v(7)
ALLOCATIONS_NAME_OWNERS = _v(8)
USAGES_OF_PROJECTS = _v(9)
CANDIDATES = _v(10)
ALLOCATIONS_LINK = _v(11)
ALLOCATIONS_BY_PROVIDER = _v(12)
ALLOCATIONS_OF_MANY = _v(13)
NESTED_PROVIDERS = _v(14)
CACHE_HEADERS = _v(15)
CANDIDATES_LIMIT = _v(16)
CANDIDATES_BY_TRAITS = _v(17)
PROVIDERS_BY_TRAITS = _v(18)
AGGREGATES_WITH_GENERATION = _v(19)
CREATED_PROVIDER_IN_BODY = _v(20)
CANDIDATES_BY_MEMBERSHIP = _v(21)
FORBIDDEN_TRAITS = _v(22)
ERROR_CODES = _v(23)
REPEATED_MEMBERSHIP = _v(24)
GRANULAR_GROUPS = _v(25)
ALL_MAY_BE_RESERVED = _v(26)
ALL_CLASSES_IN_SUMMARIES = _v(27)
CONSUMER_GENERATIONS = _v(28)
NESTED_CANDIDATES = _v(29)
RESHAPER = _v(30)
CANDIDATES_IN_TREE = _v(31)
FORBIDDEN_AGGREGATES = _v(32)
TEXT_SUFFIXES = _v(33)
MAPPINGS = _v(34)
ROOT_REQUIRED = _v(35)
SAME_SUBTREE = _v(36)
RE_PARENTING = _v(37)
CONSUMER_TYPES = _v(38)
ANY_TRAITS = _v(39)
NEWEST = ANY_TRAITS

_SERVICE = "placement"
# Placement's message for a version without a minor number.
_NO_MINOR = "Version.__new__() missing 1 required positional argument: 'minor'"


class InvalidVersion(ValueError):
    """The header is malformed; the text is the reason."""


class UnknownVersion(ValueError):
    """The requested version does not exist; the text is the version."""


def parse_version(header: str | None) -> Version:
    """Return the version that a header requests.

    Args:
        header: value of ``openstack-api-version``, several headers joined by commas; None: no header.

    Raises:
        InvalidVersion: the header is malformed.
        UnknownVersion: this program does not have the version.
    """
    text = None if header is None else _placement_part(header)
    if text is None:
        return OLDEST
    if text == "latest":
        return NEWEST
    try:
        numbers = [int(part) for part in text.split(".", 1)]
    except ValueError as error:
        raise InvalidVersion(f"{text}; {error}") from None
    if len(numbers) == 1:
        raise InvalidVersion(f"{text}; {_NO_MINOR}")
    version = Version(*numbers)
    if not OLDEST <= version <= NEWEST:
        raise UnknownVersion(text)
    return version


def _placement_part(header: str) -> str | None:
    """Return the version requested for this service; of several entries in the header, the last one counts."""
    for part in reversed(header.split(",")):
        words = part.split(None, 1)
        if len(words) == 2 and words[0].lower() == _SERVICE:
            return words[1].strip()
    return None
