"""Parameters of query strings: amounts, traits and aggregates, in the syntax of each version."""

from collections.abc import Sequence

from roost.errors import BadRequest
from roost.model.names import uuid_bytes, uuid_text
from roost.model.placement import microversions
from roost.model.placement.microversions import Version

_AMOUNT_END = 2**63  # upper bound of the databases
_ANY_FORM = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"
_ANY = "in:"
_NOT = "!"

Sets = tuple[frozenset[str], ...]  # each set is a disjunction of names


def amounts(value: str) -> dict[str, int]:
    """Parse ``CLASS:amount,…``.

    Raises:
        BadRequest: the syntax is invalid, or an amount is not positive.
    """
    parsed = {}
    for part in value.split(","):
        name, colon, text = part.partition(":")
        if not colon or ":" in text:
            raise BadRequest(
                "Badly formed resources parameter. Expected resources query string parameter in form: "
                f"?resources=VCPU:2,MEMORY_MB:1024. Got: {part if value.strip() else 'empty string'}."
            )
        parsed[name] = _amount(name, text)
    return parsed


def _amount(name: str, text: str) -> int:
    try:
        amount = int(text)
    except ValueError:
        raise BadRequest(f"Requested resource {name} expected positive integer amount. Got: {text}.") from None
    if amount < 1:
        raise BadRequest(f"Requested resource {name} requires amount >= 1. Got: {amount}.")
    if amount >= _AMOUNT_END:
        raise BadRequest(f"Requested resource {name} requires amount <= {_AMOUNT_END - 1}. Got: {amount}.")
    return amount


def traits(values: Sequence[str], version: Version) -> tuple[Sets, frozenset[str]]:
    """Parse required and forbidden traits; a repeated required trait is returned repeatedly.

    Args:
        values: of ``required``, in order; before 1.39 only the last one counts.

    Raises:
        BadRequest: a name is empty, or the version lacks the syntax.
    """
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values if version >= microversions.ANY_TRAITS else values[-1:]:
        if value.startswith(_ANY):
            required.append(_any_of(value, version))
            continue
        names = _names(value, version)
        required += [frozenset({name}) for name in names if not name.startswith(_NOT)]
        forbidden |= {name.lstrip(_NOT) for name in names if name.startswith(_NOT)}
    return tuple(required), frozenset(forbidden)


def _any_of(value: str, version: Version) -> frozenset[str]:
    if version < microversions.ANY_TRAITS:
        raise _bad(
            f"The format '{_ANY_FORM}' only supported since microversion {microversions.ANY_TRAITS}. Got: {value}"
        )
    names = [name.strip() for name in value.removeprefix(_ANY).split(",")]
    if not all(names):
        raise _bad(f"Expected 'required' parameter value of the form: {_ANY_FORM}. Got an empty trait in: {value}")
    if any(name.startswith(_NOT) for name in names):
        raise _bad(f"The format '{_ANY_FORM}' does not support forbidden traits. Got: {value}")
    return frozenset(names)


def _names(value: str, version: Version) -> list[str]:
    may_forbid = version >= microversions.FORBIDDEN_TRAITS
    form = f"Expected 'required' parameter value of the form: HW_CPU_X86_VMX,{_NOT if may_forbid else ''}CUSTOM_MAGIC"
    names = [name.strip() for name in value.split(",")]
    if not all(name.lstrip(_NOT) for name in names):
        raise _bad(f"{form}. Got an empty trait in: {value}")
    if not may_forbid and any(name.startswith(_NOT) for name in names):
        raise _bad(f"{form}. Got: {value}")
    return names


def aggregates(values: Sequence[str], version: Version, *, key: str = "member_of") -> tuple[Sets, frozenset[str]]:
    """Parse the uuids of required and of forbidden aggregates.

    Args:
        values: of ``key``, in order.
        key: the parameter, with its suffix.

    Raises:
        BadRequest: a uuid is invalid, or the version lacks the syntax.
    """
    if len(values) > 1 and version < microversions.REPEATED_MEMBERSHIP:
        raise BadRequest("Multiple member_of parameters are not supported")
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        uuids = _uuids(value)
        if not value.startswith(_NOT):
            required.append(uuids)
        elif version >= microversions.FORBIDDEN_AGGREGATES:
            forbidden |= uuids
        else:
            raise BadRequest(f"Forbidden {key} parameters are not supported in the specified microversion")
    return tuple(required), frozenset(forbidden)


def _uuids(value: str) -> frozenset[str]:
    named = value.removeprefix(_NOT)
    if not named.startswith(_ANY) and "," in named:
        raise BadRequest(
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid "
            f"microversion. Got: {value}"
        )
    uuids = set()
    for text in named.removeprefix(_ANY).split(","):
        uuid = _uuid(text)
        if uuid is None:
            raise _bad(f"Expected 'member_of' parameter to contain valid UUID(s). Got: {text}")
        uuids.add(uuid)
    return frozenset(uuids)


def tree(value: str) -> str:
    """Parse the uuid of a provider whose tree is searched.

    Raises:
        BadRequest: the uuid is invalid.
    """
    uuid = _uuid(value.strip())
    if uuid is None:
        raise _bad(f"Expected 'in_tree' parameter to be a format of uuid. Got: {value}")
    return uuid


def _uuid(text: str) -> str | None:
    """Return a uuid in canonical form; None: it contains more than digits, dashes, braces, ``urn:``, ``uuid:``."""
    body = uuid_bytes(text)
    digits = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
    return uuid_text(body) if body is not None and body.hex() == digits else None


def _bad(text: str) -> BadRequest:
    return BadRequest(f"Invalid query string parameters: {text}")
