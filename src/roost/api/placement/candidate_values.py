"""The values of a query for candidates: amounts, traits, aggregates and trees as they are written in a query string."""

import uuid
from collections.abc import Iterable

from roost.api.placement import versions
from roost.api.placement.versions import Version
from roost.errors import BadRequest
from roost.model.names import uuid_form

_QUERY = "Invalid query string parameters:"
_ANY_TRAITS = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"


def resources(value: str) -> dict[str, int]:
    """Return the amounts of ``CLASS:AMOUNT,…``; the last of a class counts.

    Raises:
        BadRequest: it is not of that form, or an amount is no whole number above 0.
    """
    if not value.strip():
        raise _badly_formed("empty string")
    amounts: dict[str, int] = {}
    for part in value.split(","):
        name, colon, text = part.partition(":")
        if not colon or ":" in text:
            raise _badly_formed(part)
        try:
            amount = int(text)
        except ValueError:
            raise BadRequest(f"Requested resource {name} expected positive integer amount. Got: {text}.") from None
        if amount < 1:
            raise BadRequest(f"Requested resource {name} requires amount >= 1. Got: {amount}.")
        amounts[name] = amount
    return amounts


def _badly_formed(text: str) -> BadRequest:
    return BadRequest(
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        f"?resources=VCPU:2,MEMORY_MB:1024. Got: {text}."
    )


def traits(values: Iterable[str], version: Version) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Return what ``A,B,!C`` and ``in:A,B`` require (of every set one) and forbid.

    Raises:
        BadRequest: a name is empty, or a form is of a later version.
    """
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        if value.startswith("in:"):
            required.append(_any_traits(value, version))
            continue
        for name in _trait_names(value, version):
            if name.startswith("!"):
                forbidden.add(name.lstrip("!"))
            else:
                required.append(frozenset({name}))
    return tuple(required), frozenset(forbidden)


def _any_traits(value: str, version: Version) -> frozenset[str]:
    if version < versions.ANY_TRAITS:
        raise BadRequest(f"{_QUERY} The format '{_ANY_TRAITS}' only supported since microversion 1.39. Got: {value}")
    names = [name.strip() for name in value.removeprefix("in:").split(",")]
    if not all(names):
        raise _empty_trait(_ANY_TRAITS, value)
    if any(name.startswith("!") for name in names):
        raise BadRequest(f"{_QUERY} The format '{_ANY_TRAITS}' does not support forbidden traits. Got: {value}")
    return frozenset(names)


def _trait_names(value: str, version: Version) -> list[str]:
    may_forbid = version >= versions.FORBIDDEN_TRAITS
    form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if may_forbid else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
    names = [name.strip() for name in value.split(",")]
    if not all(name.lstrip("!") for name in names):
        raise _empty_trait(form, value)
    if not may_forbid and any(name.startswith("!") for name in names):
        raise BadRequest(f"{_QUERY} Expected 'required' parameter value of the form: {form}. Got: {value}")
    return names


def _empty_trait(form: str, value: str) -> BadRequest:
    return BadRequest(
        f"{_QUERY} Expected 'required' parameter value of the form: {form}. Got an empty trait in: {value}"
    )


def aggregates(
    values: list[str], version: Version, *, key: str
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:  # fmt: skip
    """Return which aggregates ``U``, ``in:U,V``, ``!U`` and ``!in:U,V`` ask for (of every set one) and forbid.

    Args:
        key: the name of the parameter, suffix included.

    Raises:
        BadRequest: something is no uuid, or a form is of a later version.
    """
    if len(values) > 1 and version < versions.REPEATED_MEMBERSHIP:
        raise BadRequest("Multiple member_of parameters are not supported")
    asked: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        is_forbidden = value.startswith("!")
        plain = value.removeprefix("!")
        if plain.startswith("in:"):
            parts = plain.removeprefix("in:").split(",")
        elif "," in plain:
            raise BadRequest(
                "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid "
                f"microversion. Got: {value}"
            )
        else:
            parts = [plain]
        for part in parts:
            if not _is_uuid(part):
                raise BadRequest(f"{_QUERY} Expected 'member_of' parameter to contain valid UUID(s). Got: {part}")
        if is_forbidden and version < versions.FORBIDDEN_AGGREGATES:
            raise BadRequest(f"Forbidden {key} parameters are not supported in the specified microversion")
        uuids = frozenset(map(uuid_form, parts))
        if is_forbidden:
            forbidden |= uuids
        else:
            asked.append(uuids)
    return tuple(asked), frozenset(forbidden)


def tree(value: str) -> str:
    """Return the uuid of a provider whose tree is wanted.

    Raises:
        BadRequest: it is no uuid.
    """
    text = value.strip()
    if not _is_uuid(text):
        raise BadRequest(f"{_QUERY} Expected 'in_tree' parameter to be a format of uuid. Got: {value}")
    return uuid_form(text)


def _is_uuid(text: str) -> bool:
    """Say whether a text is a uuid in one of its usual spellings: dashes are optional, nothing else is added."""
    try:
        body = uuid.UUID(text).hex
    except ValueError:
        return False
    return body == text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
