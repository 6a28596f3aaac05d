"""``roost replay``: replay a trace or a generated workload."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.core import ParameterSource
from msgspec.structs import replace

from roost.cli.options import PATH, nova_conf
from roost.cli.output.output_options import Output, output_options
from roost.cli.replays.compare_policies import (
    ComparisonOptions,
    check_plots,
    draw_plots,
    parse_seeds,
    print_report,
    run_comparison,
)
from roost.cli.replays.replay_history import or_history
from roost.cli.text.progress import progress_bar
from roost.cli.text.replay_text import to_text
from roost.errors import BadRequest
from roost.scheduler.pipeline.budget import lift_search_limit
from roost.simulator.replay import CHUNK, ReplayTarget
from roost.simulator.replay import replay as run_replay
from roost.simulator.report import json_file
from roost.simulator.runs import Source, trace_source
from roost.simulator.traces.cospot import HOSTS_SYNTAX
from roost.simulator.traces.formats import list_formats, open_workload
from roost.simulator.traces.generated_requests import MIXES
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options

_DEFAULTS = Recipe()

_HELP = f"""Replay a trace with the real scheduler and store, and print a report.

TRACE are the files of one trace, in any order, recognised by their headers:
{list_formats()}.

Without --data or --memory the database is store.url of the settings given with --config, else a temporary one.

With --from, decide the recorded requests of a database again, from its own state before the first of them, under the
settings of each --config, and on a fleet with hosts added or removed. Servers can keep running; nothing is changed.

To compare policies, repeat --config, or give --seeds or --results. Each run then has a database of its own, in memory
or below --data. Print one table with the figures of all policies.
"""


@click.command("replay", help=_HELP, short_help="Replay a trace with the real scheduler.")
@click.argument("trace", nargs=-1, type=PATH)
@click.option("--hosts", multiple=True, help=f"Hosts, for traces without hosts (cospot): {HOSTS_SYNTAX}.")
@click.option("--generate", "is_generated", is_flag=True, help="Generate a workload instead of reading a trace.")
@click.option("--host-count", default=_DEFAULTS.hosts, show_default=True, help="Number of hosts.")
@click.option("--requests", default=_DEFAULTS.requests, show_default=True, help="Number of requests.")
@click.option("--seed", default=_DEFAULTS.seed, show_default=True, help="Seed of the generator.")
@click.option(
    "--mix", default=_DEFAULTS.mix, show_default=True, type=click.Choice(list(MIXES)), help="Mix of requests."
)
@click.option("--seeds", metavar="LIST", help="Seeds to compare over: a comma-separated list, A..B, or N for 1 to N.")
@click.option("--config", "configs", type=PATH, multiple=True, help="Settings file, TOML; repeat it to compare.")
@nova_conf
@click.option("--jobs", type=click.IntRange(min=1), help="Number of concurrent runs.  [default: one per CPU]")
@click.option("--results", type=PATH, help="Folder for the results of a comparison; finished runs are not repeated.")
@click.option("--plot", type=PATH, metavar="FOLDER", help="Draw plots into this folder, as PNG.")
@click.option("--data", type=PATH, help="Folder of the database, kept afterwards.  [temporary]")
@click.option("--memory", "is_in_memory", is_flag=True, help="Keep the database in memory; claims are not durable.")
@click.option("--json", "json_path", metavar="FILE", help="Also write the report as JSON; - prints only JSON.")
@output_options(can_watch=False, has_json=False)
@click.option("--no-departures", is_flag=True, help="Ignore the departures of instances.")
@click.option("--limit", type=int, help="Replay only the first N requests.")
@click.option("--chunk", default=CHUNK, show_default=True, help="Number of events per commit.")
@or_history
def replay(
    *,
    trace: tuple[Path, ...],
    hosts: tuple[str, ...],
    is_generated: bool,
    host_count: int,
    requests: int,
    seed: int,
    seeds: str | None,
    mix: str,
    configs: tuple[Path, ...],
    jobs: int | None,
    results: Path | None,
    plot: Path | None,
    data: Path | None,
    is_in_memory: bool,
    json_path: str | None,
    output: Output,
    no_departures: bool,
    limit: int | None,
    chunk: int,
) -> None:
    """Run ``roost replay``."""
    _check_combinations(
        ("TRACE and --generate", bool(is_generated and trace)),
        ("--data and --memory", is_in_memory and data is not None),
        ("--seed and --seeds", seeds is not None and _is_given("seed")),
    )
    if json_path == "-":
        output = replace(output, form="json")  # The earlier form of the option.
    options = Options(hosts=hosts, has_departures=not no_departures, limit=limit)
    recipe = Recipe(hosts=host_count, requests=requests, seed=seed, mix=mix) if is_generated else None
    if plot is not None:
        check_plots(plot)
    if len(configs) > 1 or seeds is not None or results is not None:
        generated = Source(recipe=recipe, options=options, chunk=chunk)
        comparison_options = ComparisonOptions(
            source=generated if is_generated else trace_source(trace, options=options, chunk=chunk),
            configs=configs,
            seeds=parse_seeds(seeds) if seeds is not None else (seed if is_generated else None,),
            jobs=jobs,
            results=results,
            data=data,
            json_path=json_path,
            output=output,
            plot=plot,
        )
        run_comparison(comparison_options)
        return
    if jobs is not None:
        raise click.UsageError("--jobs needs several --config, --seeds or --results")
    workload = open_workload(trace, options) if recipe is None else generate(recipe, options)
    config = configs[0] if configs else None
    with json_file(None if json_path == "-" else json_path) as write:
        with _open_target(config, data, is_in_memory=is_in_memory) as target, progress_bar("replay") as progress:
            report = run_replay(workload, target, chunk=chunk, progress=progress)
        write(report)
    if plot is not None:
        draw_plots({"settings" if config is None else config.stem: [report]}, plot, title=report.workload)
    print_report(report, to_text, output=output)


def _check_combinations(*pairs: tuple[str, bool]) -> None:
    for names, are_both_given in pairs:
        if are_both_given:
            raise click.UsageError(f"{names} cannot be combined")


def _is_given(parameter: str) -> bool:
    return click.get_current_context().get_parameter_source(parameter) is not ParameterSource.DEFAULT


@contextmanager
def _open_target(config: Path | None, data: Path | None, *, is_in_memory: bool) -> Iterator[ReplayTarget]:
    # Imported only here, so that help and completion are fast.
    from roost.app import open_roost

    if is_in_memory or data is not None:
        with (
            open_roost(config, data, environ=os.environ, is_scratch=True) as roost,
            lift_search_limit(roost.state),
        ):
            if any(roost.state.hosts.alive.each):
                raise BadRequest(f"{data} has a fleet already; give another folder with --data")
            yield roost
        return
    # A settings file in a usual place may name a production database: never replay a trace on it.
    is_scratch = config is None
    with (
        tempfile.TemporaryDirectory(prefix="roost-replay-") as folder,
        open_roost(config, Path(folder), environ=os.environ, is_scratch=is_scratch) as roost,
        lift_search_limit(roost.state),
    ):
        yield roost
