"""Arguments of ``roost capacity``: flavors by name, from a file or as amounts, and requests from files."""

import difflib
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from roost.errors import BadFile, BadRequest, NotFound, first_line
from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.offline.read_document import display_name, parse_document, read_bytes

_ANYTHING: Any = Any
# Keys of amounts.
_AMOUNTS = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap")
_NUMBER = re.compile(r"-?[0-9]{1,18}")


def read_request(path: str) -> Request:
    """Read a request from a JSON file.

    Raises:
        BadFile: the file cannot be read, has an unknown key, or is not a valid request.
    """
    request = _decode_file(path, Request)
    assert isinstance(request, Request)
    return request


def parse_flavors(texts: Iterable[str], known_flavors: Iterable[Flavor]) -> list[Flavor]:
    """Resolve the flavors of the command line, in order.

    Args:
        texts: each is amounts (``vcpus=4,memory_mb=8192``), a path with ``.json`` or ``/``, or a name.
        known_flavors: flavors that a name can refer to.

    Raises:
        BadFile: a file cannot be read, or has no flavors.
        BadRequest: amounts are invalid, or a name is ambiguous.
        NotFound: a name is unknown.
    """
    by_name: dict[str, list[Flavor]] = {}
    for flavor in known_flavors:
        by_name.setdefault(flavor.name, []).append(flavor)
    flavors: list[Flavor] = []
    for text in texts:
        if text in by_name:
            flavors.append(_single_flavor(text, by_name[text]))
        elif "=" in text and not text.endswith(".json"):
            flavors.append(_parse_amounts(text))
        elif text.endswith(".json") or "/" in text:
            flavors.extend(_read_flavors(text))
        else:
            raise NotFound("stored or previously requested flavor", text)
    return flavors


def _single_flavor(name: str, flavors: list[Flavor]) -> Flavor:
    if len(flavors) > 1:
        raise BadRequest(f"the name {name!r} is ambiguous: {len(flavors)} flavors have it; put the right one in a file")
    return flavors[0]


def _parse_amounts(text: str) -> Flavor:
    amounts: dict[str, object] = {"name": text}
    keys: set[str] = set()
    for part in text.split(","):
        key, _, value = (word.strip() for word in part.partition("="))
        if key in keys:
            raise BadRequest(f"flavor {text!r}: {key} is repeated")
        keys.add(key)
        amounts[key] = value
    for key in sorted(keys - {*_AMOUNTS, "name"}):
        close = difflib.get_close_matches(key, _AMOUNTS, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}? The keys are " if close else "the keys are "
        raise BadRequest(f"flavor {text!r}: unknown key {key!r}; {hint}{', '.join(_AMOUNTS)}")
    for key in _AMOUNTS:
        if key in keys and not _NUMBER.fullmatch(str(amounts[key])):
            raise BadRequest(f"flavor {text!r}: {key} must be a whole number, got {amounts[key]!r}")
    try:
        return msgspec.convert(amounts, Flavor, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise BadRequest(f"flavor {text!r}: {first_line(error)}") from None


def _read_flavors(path: str) -> list[Flavor]:
    content = _decode_file(path, Flavor | list[Flavor])
    flavors = [content] if isinstance(content, Flavor) else list(content)
    if not flavors:
        raise BadFile(path, "contains no flavor")
    return flavors


def _decode_file(path: str, kind: Any) -> Any:
    """Decode a JSON file, and refuse unknown keys."""
    body, name = read_bytes(path), display_name(path)
    content = parse_document(body, kind, name=name)
    _check_keys(parse_document(body, _ANYTHING, name=name), content, place="$", name=name)
    return content


def _check_keys(raw: Any, decoded: Any, *, place: str, name: str) -> None:
    """Refuse keys that the decoder ignored: a misspelt key would silently change the answer."""
    if isinstance(decoded, msgspec.Struct):
        fields = {field.encode_name: field.name for field in msgspec.structs.fields(decoded)}
        for key, value in raw.items():
            if key not in fields:
                raise BadFile(name, f"{place}: there is no key {key[:70]!r}")
            _check_keys(value, getattr(decoded, fields[key]), place=f"{place}.{key}", name=name)
    elif isinstance(decoded, (list, tuple)):
        for index, (value, item) in enumerate(zip(raw, decoded, strict=True)):
            _check_keys(value, item, place=f"{place}[{index}]", name=name)
