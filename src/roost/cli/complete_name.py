"""Completion of values in a shell: names of the server's objects, sections of settings, types of events."""

import io
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr, suppress
from typing import Any

import click
from click.shell_completion import CompletionItem

from roost.cli.backend import Api, server_api
from roost.cli.connection.find_connection import find_connection

_NAMES_MAX = 100
_PAGE_MAX = 1000
_DEADLINE_S = 1.0
# A shell inserts a completed name as it is, so a name with other characters could become a command.
_PLAIN = re.compile(r"[\w@%+=:,.][\w@%+=:,./-]*")

# The list of each kind of object, and the field with its name. Pages of these lists have a length.
_PAGES: Mapping[str, tuple[str, str]] = {
    "agent": ("agents", "host"),
    "aggregate": ("aggregates", "name"),
    "group": ("groups", "name"),
    "host": ("services", "host"),
    "instance": ("instances", "name"),
    "migration": ("migrations", "uuid"),
    "node": ("hosts", "node"),
    "operation": ("operations", "uuid"),
}
# Kinds whose lists select names by their beginning.
_SELECTED = frozenset({"instance", "node"})
# Lists of one page.
_SHORT: Mapping[str, tuple[str, str]] = {
    "flavor": ("flavors", "name"),
    "image": ("images", "name"),
    "zone": ("zones", "name"),
}


class NameType(click.types.StringParamType):
    """A string that a shell completes with the names of existing objects.

    Args:
        kind: of the objects, in the singular, like host; also section, event_type and decision.
    """

    def __init__(self, kind: str) -> None:
        is_known = kind in _PAGES or kind in _SHORT or kind in _LOCAL or kind == "decision"
        assert is_known, f"no list of names for {kind!r}: add it to _PAGES or _SHORT"
        self.kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with a text, at most 100; from a server those of one second."""
        del param  # The kind determines the names.
        found: list[str] = []

        def collect() -> None:
            with suppress(Exception):  # A shell has no place for the error of a completion.
                seen = set()
                for name in _names(self.kind, ctx.params, incomplete):
                    if name.startswith(incomplete) and name not in seen and _PLAIN.fullmatch(name):
                        seen.add(name)
                        found.append(name)
                    if len(found) == _NAMES_MAX:
                        return

        # A thread of this kind does not delay the end of the process, whatever the server does.
        thread = threading.Thread(target=collect, daemon=True)
        with redirect_stderr(io.StringIO()):
            thread.start()
            thread.join(None if self.kind in _LOCAL else _DEADLINE_S)
        return [CompletionItem(name) for name in tuple(found)]


def _names(kind: str, values: Mapping[str, Any], incomplete: str) -> Iterator[str]:
    """Yield the names of a kind, from the server that the options or the environment select.

    Args:
        values: of the options on the command line.
    """
    if kind in _LOCAL:
        yield from _LOCAL[kind](values)
        return
    if any(values.get(name) is not None for name in ("config", "data", "database")):
        return  # To open a database takes too long.
    found = find_connection(**{name: values.get(name) for name in ("url", "token", "token_file", "profile")})
    if kind == "decision":
        yield from ("last", "last-refused")
        kind = "instance"
    yield from _pages(server_api(found), kind, incomplete)


def _pages(api: Api, kind: str, incomplete: str) -> Iterator[str]:
    noun, field = _PAGES.get(kind) or _SHORT[kind]
    query = {"limit": str(_PAGE_MAX if incomplete else _NAMES_MAX)} if kind in _PAGES else {}
    if incomplete and kind in _SELECTED:
        query |= {"name": f"{incomplete}*", "fields": field}
    for each in api.iterate(noun, **query):
        yield str(each[field])


def _sections(values: Mapping[str, Any]) -> Iterable[str]:
    from roost.app import check_settings
    from roost.settings import values_of

    settings = check_settings(values.get("config"), os.environ).settings
    return sorted({section for section, _ in values_of(settings)})


def _event_types(_values: Mapping[str, Any]) -> Iterable[str]:
    from roost.cli.event_types import list_types

    return sorted(list_types())


# Kinds whose names this program knows.
_LOCAL: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = {"event_type": _event_types, "section": _sections}
