"""``roost config``: the settings in force, their sources, and their errors."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from roost.cli import options
from roost.cli.text.plain_text import escape_json, escape_text, paragraph
from roost.cli.text.tables import align
from roost.errors import BadSettings

if TYPE_CHECKING:
    from roost.settings import LoadedSettings

_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """One printed setting."""

    section: str
    key: str
    value: Any
    source: str  # file and line, or default


@click.group("config", short_help="Show and check the settings.")
def config() -> None:
    """Show and check the settings."""


@config.command("show", short_help="Print all settings with their sources.")
@options.config
@click.option("--section", help="Only settings of this section.")
@click.option("--set", "is_set", is_flag=True, help="Only settings that a file sets.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def show(*, config: Path | None, section: str | None, is_set: bool, is_json: bool) -> None:
    """Print all settings: name, value, and the file and line that set it, or "default"."""
    from roost.app import settings_with_sources

    lines = [
        line
        for line in _lines(settings_with_sources(config, os.environ))
        if section in (None, line.section) and not (is_set and line.source == "default")
    ]
    if is_json:
        click.echo(escape_json(msgspec.json.format(msgspec.json.encode(lines), indent=2)))
        return
    rows = [(f"{line.section}.{line.key}", _text(line.value), line.source) for line in lines]
    click.echo(paragraph(align([("setting", "value", "source"), *rows], indent=0, right=())), nl=False)


@config.command("check", short_help="Print all errors in the settings.")
@options.config
@click.option("--json", "is_json", is_flag=True, help="Print the errors as JSON.")
def check(*, config: Path | None, is_json: bool) -> None:
    """Print all errors in the settings and the rules that they enable. End with exit code 3 if there are any."""
    from roost.app import check_settings

    loaded = check_settings(config, os.environ)
    if is_json:
        click.echo(escape_json(msgspec.json.encode([str(problem) for problem in loaded.problems])))
    else:
        click.echo(paragraph(map(str, loaded.problems)), nl=False)
    for note in loaded.dropped:
        click.echo(f"roost: {escape_text(note)}", err=True)
    if loaded.problems:
        count = len(loaded.problems)
        raise BadSettings("settings", "1 problem" if count == 1 else f"{count} problems")
    if not is_json:
        click.echo(f"no errors: files set {len(loaded.sources)} settings, the others have their defaults")


def _lines(loaded: "LoadedSettings") -> list[_Line]:
    from roost.settings import values_of

    return [
        _Line(
            section=section, key=key, value=_hide_password(value), source=loaded.sources.get((section, key), "default")
        )
        for (section, key), value in values_of(loaded.settings).items()
    ]


def _hide_password(value: object) -> object:
    """Mask the password in a URL."""
    return _PASSWORD.sub(r"\1:***@", value) if isinstance(value, str) else value


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
