"""``roost policy``: the access policies of both APIs."""

import os
from pathlib import Path

import click
import msgspec

from roost.cli import options
from roost.cli.output.list_view import ListView, field
from roost.cli.output.output_options import Output, output_options
from roost.cli.text.plain_text import escape_text

_RULES = ListView(
    nouns="rules",
    columns=(
        field("name"),
        field("rule", kind="prose"),
        field("source"),
        field("operations", kind="prose", shown="wide"),
    ),
)


@click.group("policy", short_help="Show the access policies.")
def policy() -> None:
    """Show the access policies of the Placement API and of Roost's own API."""


@policy.command("show")
@options.config
@options.conf
@click.option("--policy-file", metavar="FILE", help="Policy file, YAML or JSON.  [from the settings]")
@options.exclusive_flags(
    "is_legacy", ("--legacy", "Show the legacy defaults.  [from the settings]"), ("--new", "Show the new defaults.")
)
@output_options(_RULES, can_watch=False)
def show(
    *, config: Path | None, conf: Path | None, policy_file: str | None, is_legacy: bool | None, output: Output
) -> None:
    """Print all policy rules in force: name, rule, and source."""
    from roost.api.placement.routes import table
    from roost.api.v1.routes import TABLE
    from roost.app import placement_policy, placement_settings

    overrides: dict[str, object] = {} if is_legacy is None else {"enforce_new_defaults": not is_legacy}
    if policy_file is not None:
        overrides["policy_file"] = policy_file
    policy = placement_policy(placement_settings(config, os.environ, conf=conf, overrides=overrides))
    for warning in policy.warnings:
        click.echo(f"roost: {escape_text(warning)}", err=True)
    operations: dict[str, list[str]] = {}
    for prefix, paths in (("", table()), ("/v1", TABLE)):
        for path, methods in paths.items():
            for method, route in methods.items():
                operations.setdefault(route.policy or "", []).append(f"{method} {prefix}{path}")
    rows = [{**msgspec.to_builtins(each), "operations": operations.get(each.name, [])} for each in policy.table]
    output.print_rows(_RULES, rows)
