"""``roost replay --from``: recorded requests of a database, under other settings or on another fleet."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from roost.cli.output.output_options import Output
from roost.cli.replays.compare_policies import check_plots, read_policies
from roost.cli.text.history_text import to_text
from roost.cli.text.moments import parse_moment
from roost.cli.text.plain_text import escape_json
from roost.cli.text.progress import progress_bar
from roost.errors import BadRequest
from roost.model.evidence.capacity import ADDED_MAX, AddedHosts, FleetChange
from roost.scheduler.comparison.policy_comparison import RecordQuery, Scenario
from roost.simulator.report import json_file, to_json

Command = TypeVar("Command", bound=Callable[..., Any])
_NEWEST = 20_000
# The parameters of both forms of the command, and those of this form.
_SHARED = ("configs", "json_path", "output", "plot")
_OWN = ("database", "since", "newest", "add_hosts", "without_zones", "without_racks", "without_hosts")
_ADDED = re.compile(r"(?P<like>.+)=(?P<count>[0-9]{1,9})")


class HistoryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The database with the record, the requests to decide again, and the change of the fleet."""

    database: str  # URL, path of a SQLite file, or its folder
    since: str | None
    newest: int
    change: FleetChange


def or_history(command: Command) -> Command:
    """Add --from and its options to ``roost replay``; with --from, replay recorded requests instead of a trace."""

    def run(*, database: str | None, since: str | None, newest: int | None, **more: Any) -> Any:
        removed = {name: more.pop(name) for name in ("without_zones", "without_racks", "without_hosts")}
        change = FleetChange(**removed, add_hosts=tuple(map(_parse_added, more.pop("add_hosts"))))
        if database is None:
            if since is not None or newest is not None or change:
                raise click.UsageError("--since, --newest, --add-hosts and --without-… need --from")
            return command(**more)
        _check_alone()
        newest = _NEWEST if newest is None else newest
        history = HistoryOptions(database=database, since=since, newest=newest, change=change)
        return replay_history(history, **{name: more[name] for name in _SHARED})

    run.__doc__ = command.__doc__
    for option in (
        click.option("--without-host", "without_hosts", multiple=True, metavar="HOST", help="Remove this host."),
        click.option("--without-rack", "without_racks", multiple=True, metavar="RACK", help="Remove this rack."),
        click.option("--without-zone", "without_zones", multiple=True, metavar="ZONE", help="Remove this zone."),
        click.option("--add-hosts", multiple=True, metavar="HOST=N", help="Add N empty copies of a host."),
        click.option(
            "--newest",
            type=click.IntRange(min=1),
            metavar="N",
            help=f"Only the newest N recorded requests.  [default: {_NEWEST:,}]",
        ),
        click.option("--since", metavar="TIME", help="Only requests since then, like 12h or 7d ago, or 2026-01-31."),
        click.option(
            "--from",
            "database",
            metavar="DATABASE",
            help="Replay the recorded requests of this database: URL, path of a SQLite file, or its folder.",
        ),
    ):
        run = option(run)
    return run  # type: ignore[return-value]  # has the command's parameters, and those above


def _check_alone() -> None:
    """Refuse options that only concern traces."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name not in {*_SHARED, *_OWN} and not name.startswith("output"):
            raise click.UsageError(f"--from cannot be combined with {parameter.opts[0]}")


def _parse_added(text: str) -> AddedHosts:
    found = _ADDED.fullmatch(text)
    if found is None or not 1 <= int(found["count"]) <= ADDED_MAX:
        raise BadRequest(f"--add-hosts must be HOST=N with N from 1 to {ADDED_MAX:,}, got {text[:70]!r}")
    return AddedHosts(like=found["like"], count=int(found["count"]))


def replay_history(
    history: HistoryOptions, *, configs: tuple[Path, ...], json_path: str | None, output: Output, plot: Path | None
) -> None:
    """Decide recorded requests again, and print the comparison. Write nothing to the database.

    Raises:
        RoostError: a setting is wrong, the database cannot be read, a host of the change does not exist, or a file
            cannot be written.
    """
    # Imported only here, so that help and completion are fast.
    from roost.app import open_reader
    from roost.scheduler.pipeline.budget import lift_search_limit

    if plot is not None:
        check_plots(plot)
    since_s = 0.0 if history.since is None else parse_moment(history.since, option="--since")
    query = RecordQuery(newest=history.newest, since_s=since_s, has_hosts=plot is not None)
    scenarios = _build_scenarios(configs, history.change)
    folder = Path(history.database)
    data, database = (folder, None) if folder.is_dir() else (None, history.database)
    source = f"{'--database' if data is None else '--data'} {history.database}"
    with json_file(None if json_path == "-" else json_path) as write:
        with (
            open_reader(None, data, environ=os.environ, database=database) as roost,
            lift_search_limit(roost.state),
            progress_bar("replay") as progress,
        ):
            comparison = roost.compare(scenarios, query, is_late=lambda: False, progress=progress)
        write(comparison)
    if plot is not None:
        from roost.simulator.history_plots import draw

        path = draw(comparison, plot)
        click.echo(f"replay: wrote {path}", err=True)
    if output.form == "json":
        click.echo(escape_json(to_json(comparison)), nl=False)
    else:
        output.print_document(comparison, lambda: to_text(comparison, source=source))


def _build_scenarios(configs: tuple[Path, ...], change: FleetChange) -> Mapping[str, Scenario]:
    """Return a scenario for each policy, and one more with the changed fleet."""
    scenarios: dict[str, Scenario] = {}
    for policy in read_policies(configs):
        scenarios[policy.name] = Scenario(policy.settings)
        if change:
            scenarios[f"{policy.name}, other fleet"] = Scenario(policy.settings, change)
    return scenarios
