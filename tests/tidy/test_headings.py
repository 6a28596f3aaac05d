"""Every rule, error, setting and command has a heading in the documents.

The names are discovered: a new one needs a heading as soon as it exists.
"""

import inspect
import re
from collections.abc import Iterator

import click
import msgspec
import pytest

from tests.tidy import repository


def has_heading(name: str) -> bool:
    """Return whether a heading begins with the name, after an optional section or dotted prefix."""
    return any(
        re.match(rf"(?:\[[\w.]+\]\s*)?(?:\w+\.)*{re.escape(name)}(?![\w-])", text) for text in repository.headings()
    )


def classes(module: str, kind: type) -> list[type]:
    """Return the public classes of one kind defined in a module."""
    values = [
        value for value in repository.members(module).values() if inspect.isclass(value) and issubclass(value, kind)
    ]
    return [value for value in values if value.__module__ == module and not value.__name__.startswith("_")]


def errors() -> list[str]:
    """Return the names of all public errors."""
    return sorted(kind.__name__ for kind in classes("roost.errors", BaseException))


def settings() -> list[str]:
    """Return the names of all settings, as in a settings file; ``tables`` has those of rules, by their own names."""
    kinds = classes("roost.model.settings.roost_settings", msgspec.Struct)
    return sorted({field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)} - {"tables"})


def commands() -> list[str]:
    """Return every command as typed by a user."""
    members = repository.members("roost.cli")
    main = members.get("main")
    # The entry point may be a function around the group, in the same module.
    candidates = [main] if isinstance(main, click.Command) else members.values()
    roots = [value for value in candidates if isinstance(value, click.Group)]
    return sorted({name for root in roots for name in leaves(root, "roost")})


def leaves(command: click.Command, name: str) -> Iterator[str]:
    """Yield the full names of all commands below one, without groups."""
    if not isinstance(command, click.Group):
        yield name
        return
    context = click.Context(command, info_name=name)
    for part in command.list_commands(context):
        child = command.get_command(context, part)
        if child is not None and not child.hidden:
            yield from leaves(child, f"{name} {part}")


@pytest.mark.parametrize("name", repository.rules("filters"))
def test_filter_has_a_heading(name):
    assert has_heading(name), f"no heading under docs/ begins with {name}"


@pytest.mark.parametrize("name", repository.rules("query/prefilters"))
def test_prefilter_has_a_heading(name):
    assert has_heading(name), f"no heading under docs/ begins with {name}"


@pytest.mark.parametrize("name", repository.rules("weighers"))
def test_weigher_has_a_heading(name):
    assert has_heading(name), f"no heading under docs/ begins with {name}"


@pytest.mark.parametrize("name", errors())
def test_error_has_a_heading(name):
    assert has_heading(name), f"no heading under docs/ begins with {name}"


@pytest.mark.parametrize("name", settings())
def test_setting_has_a_heading(name):
    assert has_heading(name), f"no heading under docs/ begins with {name}"


@pytest.mark.parametrize("name", commands())
def test_command_has_a_heading(name):
    assert has_heading(name), f"no heading under docs/ begins with {name}"


def test_commands_are_found_in_nested_groups():
    host = click.Group("host", commands=[click.Command("list"), click.Command("secret", hidden=True)])
    assert list(leaves(click.Group("roost", commands=[host, click.Command("up")]), "roost")) == [
        "roost host list",
        "roost up",
    ]
