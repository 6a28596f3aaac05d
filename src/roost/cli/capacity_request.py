"""What capacity is asked of: flavors by name, in a file or written out, and requests in files."""

from collections.abc import Iterable
from typing import Any

import msgspec

from roost.errors import BadFile, BadRequest, NotFound, first_line
from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.offline.read_document import bytes_of, parse_document, shown

_ANYTHING: Any = Any


def request_in(path: str) -> Request:
    """Return the request that a JSON file holds.

    Raises:
        BadFile: it cannot be read, holds an unknown key, or what no request can be.
    """
    found = _decoded(path, Request)
    assert isinstance(found, Request)
    return found


def flavors_asked(texts: Iterable[str], known: Iterable[Flavor]) -> list[Flavor]:
    """Return the flavors that the command line asks for, in order.

    Args:
        texts: ``vcpus=4,memory_mb=8192``; a path that ends with ``.json`` or holds a ``/``; else a name.
        known: what names may mean.

    Raises:
        BadFile: a file cannot be read, or holds no flavors.
        BadRequest: a flavor cannot be meant, or a name means several.
        NotFound: nobody knows the name.
    """
    by_name: dict[str, list[Flavor]] = {}
    for flavor in known:
        by_name.setdefault(flavor.name, []).append(flavor)
    found: list[Flavor] = []
    for text in texts:
        if text in by_name:
            found.append(_only(text, by_name[text]))
        elif "=" in text and not text.endswith(".json"):
            found.append(_written_out(text))
        elif text.endswith(".json") or "/" in text:
            found.extend(_in_file(text))
        else:
            raise NotFound("flavor that decisions were made for", text)
    return found


def _only(name: str, flavors: list[Flavor]) -> Flavor:
    if len(flavors) > 1:
        raise BadRequest(f"{len(flavors)} different flavors are called {name!r}: name a file with the one you mean")
    return flavors[0]


def _written_out(text: str) -> Flavor:
    amounts: dict[str, object] = {"name": text}
    seen: set[str] = set()
    for part in text.split(","):
        key, _, value = (word.strip() for word in part.partition("="))
        if key in seen:
            raise BadRequest(f"flavor {text!r}: {key} is there twice")
        seen.add(key)
        amounts[key] = value
    unknown = sorted(amounts.keys() - {field.name for field in msgspec.structs.fields(Flavor)})
    if unknown:
        raise BadRequest(f"flavor {text!r}: there is no {unknown[0]!r}")
    try:
        return msgspec.convert(amounts, Flavor, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise BadRequest(f"flavor {text!r}: {first_line(error)}") from None


def _in_file(path: str) -> list[Flavor]:
    found = _decoded(path, Flavor | list[Flavor])
    flavors = [found] if isinstance(found, Flavor) else list(found)
    if not flavors:
        raise BadFile(path, "holds no flavor")
    return flavors


def _decoded(path: str, kind: Any) -> Any:
    """Decode a JSON file, unknown keys refused."""
    body, name = bytes_of(path), shown(path)
    found = parse_document(body, kind, name=name)
    _check_keys(parse_document(body, _ANYTHING, name=name), found, place="$", name=name)
    return found


def _check_keys(raw: Any, found: Any, *, place: str, name: str) -> None:
    """Refuse what the file says and nobody read: a misspelt key would change the answer unseen."""
    if isinstance(found, msgspec.Struct):
        fields = {field.encode_name: field.name for field in msgspec.structs.fields(found)}
        for key, value in raw.items():
            if key not in fields:
                raise BadFile(name, f"{place}: there is no key {key[:70]!r}")
            _check_keys(value, getattr(found, fields[key]), place=f"{place}.{key}", name=name)
    elif isinstance(found, (list, tuple)):
        for at, (value, each) in enumerate(zip(raw, found, strict=True)):
            _check_keys(value, each, place=f"{place}[{at}]", name=name)
