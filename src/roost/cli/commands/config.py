"""``roost config``: the settings in force, their sources, and their errors."""

import difflib
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from roost.cli import options
from roost.cli.complete_name import NameType
from roost.cli.output.list_view import Column, ListView, field
from roost.cli.output.output_options import Output, output_options
from roost.cli.text.plain_text import escape_text
from roost.errors import BadSettings, NotFound, SettingsMissing

if TYPE_CHECKING:
    from roost.settings import LoadedSettings

_SETTINGS = ListView(
    nouns="settings",
    columns=(
        Column(name="setting", value=lambda row: f"{row['section']}.{row['key']}", kind="keep", shown="tables"),
        field("section", shown="csv"),
        field("key", shown="csv"),
        Column(name="value", value=lambda row: row["value"], text=lambda row: _text(row["value"]), kind="prose"),
        field("source", kind="prose"),
    ),
)


@click.group("config", short_help="Show and check the settings.")
def config() -> None:
    """Show and check the settings."""


@config.command("show", short_help="Print all settings with their sources.")
@options.config
@click.option("--section", type=NameType("section"), help="Only settings of this section.")
@click.option("--set", "is_set", is_flag=True, help="Only settings that a file sets.")
@output_options(_SETTINGS, can_watch=False)
def show(*, config: Path | None, section: str | None, is_set: bool, output: Output) -> None:
    """Print all settings: name, value, and the file and line that set it, or "default"."""
    from roost.app import settings_with_sources

    every = _rows(settings_with_sources(config, os.environ))
    if section is not None:
        _check_section(section, {row["section"] for row in every})
    rows = [row for row in every if section in (None, row["section"]) and not (is_set and row["source"] == "default")]
    output.print_rows(_SETTINGS, rows)


@config.command("check", short_help="Print all errors in the settings.")
@options.config
@output_options(can_watch=False)
def check(*, config: Path | None, output: Output) -> None:
    """Print all errors in the settings and the rules that they enable. End with exit code 3 if there are any."""
    from roost.app import check_settings

    loaded = check_settings(config, os.environ)
    problems = list(map(str, loaded.problems))
    output.print_document(problems, lambda: map(escape_text, problems))
    for note in loaded.dropped:
        click.echo(f"roost: {escape_text(note)}", err=True)
    if loaded.problems:
        count = len(loaded.problems)
        kind = SettingsMissing if isinstance(loaded.problems[0], SettingsMissing) else BadSettings
        raise kind("settings", "1 problem" if count == 1 else f"{count} problems")
    if output.is_text:
        click.echo(f"no errors: files set {len(loaded.sources)} settings, the others have their defaults")


def _check_section(section: str, known: Collection[str]) -> None:
    """Check that a section exists.

    Raises:
        NotFound: it does not; the message has a similar name, or all of them.
    """
    if section not in known:
        close = difflib.get_close_matches(section, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"the sections are {', '.join(sorted(known))}"
        raise NotFound("section", section, message=f"no such section: {section}; {hint}")


def _rows(loaded: "LoadedSettings") -> list[dict[str, Any]]:
    from roost.model.settings.setting_rows import hide_secrets
    from roost.settings import values_of

    return [
        {
            "section": section,
            "key": key,
            "value": hide_secrets(section, key, msgspec.to_builtins(value)),
            "source": loaded.sources.get((section, key), "default"),
        }
        for (section, key), value in values_of(loaded.settings).items()
    ]


def _text(value: object) -> str:
    """Return a value as in a settings file."""
    return msgspec.json.encode(value).decode()
