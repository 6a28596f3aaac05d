"""``roost lab``: published experiments, repeated with Roost's scheduler."""

import os
import tempfile
from contextlib import nullcontext
from pathlib import Path

import click

from roost.cli.options import PATH
from roost.cli.output.output_options import Output, output_options
from roost.cli.replays.compare_policies import parse_seeds, print_report
from roost.cli.text import compact_text
from roost.cli.text.lab_text import to_text
from roost.cli.text.progress import progress_bar
from roost.errors import BadRequest
from roost.simulator.lab import compact_policies, compact_runs, gpu_comparison
from roost.simulator.lab.compact_hosts import HOST_SYNTAX, parse_pattern
from roost.simulator.lab.gpu_policies import POLICIES
from roost.simulator.lab.gpu_runs import plan_runs, run_missing
from roost.simulator.report import translate_write_errors
from roost.simulator.runs import Source, trace_source
from roost.simulator.traces.generated_requests import MIXES
from roost.simulator.traces.generated_workload import Recipe
from roost.simulator.workload import Options

_FGD_HELP = """Fill a fleet of GPUs under several policies, and compare how much of it each one can allocate.

NODES is the list of the fleet's nodes, and PODS are one or more lists of pods, in the format of openb: see
docs/lab.md. Pods arrive in a random order and never leave, until 130 % of the GPUs were requested. This is the
experiment of "Beware of Fragmentation" (USENIX ATC 2023), with its random numbers: with equal files and seeds, the
results are equal to the published ones.
"""


_COMPACT_HELP = f"""Find the least number of hosts that serve a trace, under several policies.

TRACE... are the files of one trace: see docs/replays.md. Instances arrive and leave as in the trace. The hosts have one
kind, or a pattern of several kinds that repeats: --host {HOST_SYNTAX}. Without --host, they are the first
hosts of the trace. docs/lab.md describes the policies.
"""


@click.group("lab", short_help="Repeat published experiments.")
def lab() -> None:
    """Repeat published experiments with Roost's scheduler."""


@lab.command("fgd", help=_FGD_HELP, short_help="Compare policies for GPUs by how much they can allocate.")
@click.argument("nodes", type=PATH)
@click.argument("pods", nargs=-1, required=True, type=PATH)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(list(POLICIES)),
    help="Policy; repeat it to compare.  [default: all]",
)
@click.option(
    "--seeds",
    default="42..51",
    show_default=True,
    metavar="LIST",
    help="Seeds of the arrivals: a comma-separated list, A..B, or N for 1 to N.",
)
@click.option(
    "--placements",
    default=5,
    show_default=True,
    type=click.IntRange(1, 1_000),
    help="Number of runs of the random policy for each seed.",
)
@click.option("--departures", is_flag=True, help="Pods leave after the durations of the list; twice as many arrive.")
@click.option("--change-mix", type=PATH, metavar="PODS", help="List of the pods from half of the load on.")
@click.option("--restart", is_flag=True, help="Close the engine half way, and open it again from its stored state.")
@click.option("--expected", type=PATH, metavar="FILE", help="CSV file of published results to compare with.")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of concurrent runs.  [default: one per CPU]")
@click.option("--results", type=PATH, metavar="FOLDER", help="Folder for results; finished runs are not repeated.")
@click.option("--plot", type=PATH, metavar="FOLDER", help="Draw plots into this folder, as PNG.")
@output_options(can_watch=False)
def fgd(
    *,
    nodes: Path,
    pods: tuple[Path, ...],
    policies: tuple[str, ...],
    seeds: str,
    placements: int,
    departures: bool,
    change_mix: Path | None,
    restart: bool,
    expected: Path | None,
    jobs: int | None,
    results: Path | None,
    plot: Path | None,
    output: Output,
) -> None:
    """Run ``roost lab fgd``."""
    if expected is not None and (departures or change_mix is not None):
        raise BadRequest("the published pods never leave, and are of one list: leave --expected or the others out")
    published = None if expected is None else gpu_comparison.read_expected(expected)
    numbers = parse_seeds(seeds)
    if plot is not None:
        from roost.simulator.plot_style import prepare

        prepare(plot)
    with (
        nullcontext(str(results)) if results is not None else tempfile.TemporaryDirectory(prefix="roost-lab-") as folder
    ):
        with translate_write_errors(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
        runs = plan_runs(
            nodes,
            pods,
            policies=policies or tuple(POLICIES),
            seeds=numbers,
            placements=placements,
            results=Path(folder),
            later=change_mix,
            has_departures=departures,
            has_restart=restart,
        )
        with progress_bar("lab") as progress:
            found, runs_found = run_missing(runs, jobs=jobs or os.cpu_count() or 1, progress=progress)
    if plot is not None:
        from roost.simulator.lab.gpu_plots import draw

        paths = draw(runs, found, plot)
        click.echo(f"lab: wrote {len(paths)} plots to {plot}", err=True)
    print_report(gpu_comparison.compare(runs, found, expected=published, runs_found=runs_found), to_text, output=output)


@lab.command("compact", help=_COMPACT_HELP, short_help="Find the least number of hosts that serve a trace.")
@click.argument("trace", nargs=-1, type=PATH)
@click.option("--host", "hosts", multiple=True, metavar="KIND", help="Kind of the hosts; repeat it for a mix of kinds.")
@click.option("--generate", type=click.Choice(list(MIXES)), help="Generate a trace with this mix of requests.")
@click.option("--requests", default=25_000, show_default=True, type=click.IntRange(1), help="Generated requests.")
@click.option("--own-hosts", default=1_000, show_default=True, type=click.IntRange(1), help="Generated hosts.")
@click.option("--limit", type=click.IntRange(1), help="Number of requests of the trace, the earliest first.")
@click.option(
    "--allow",
    multiple=True,
    default=(0.0, 0.001),
    show_default=True,
    type=click.FloatRange(0, 1, max_open=True),
    help="Share of requests that may be refused; repeat it to compare.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(list(compact_policies.POLICIES)),
    help="Policy; repeat it to compare.  [default: all]",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Number of concurrent policies.  [default: one per CPU]")
@click.option("--results", type=PATH, metavar="FOLDER", help="Folder for results; finished policies are not repeated.")
@output_options(can_watch=False)
def compact(
    *,
    trace: tuple[Path, ...],
    hosts: tuple[str, ...],
    generate: str | None,
    requests: int,
    own_hosts: int,
    limit: int | None,
    allow: tuple[float, ...],
    policies: tuple[str, ...],
    jobs: int | None,
    results: Path | None,
    output: Output,
) -> None:
    """Run ``roost lab compact``."""
    if generate is not None and trace:
        raise BadRequest("name the files of a trace, or generate one with --generate, not both")
    if generate is not None and hosts:
        raise BadRequest("a generated trace has its own hosts: leave --host out")
    pattern = parse_pattern(hosts)
    options = Options(hosts=tuple(f"1x{kind}" for kind in pattern), limit=limit)
    source = (
        trace_source(trace, options=options, chunk=1)
        if generate is None
        else Source(recipe=Recipe(hosts=own_hosts, requests=requests, mix=generate), options=options, chunk=1)
    )
    with (
        nullcontext(str(results)) if results is not None else tempfile.TemporaryDirectory(prefix="roost-lab-") as folder
    ):
        with translate_write_errors(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
        with progress_bar("lab") as progress:
            compaction = compact_runs.compact(
                source,
                pattern=pattern,
                policies=policies or tuple(compact_policies.POLICIES),
                allow=allow,
                jobs=jobs or os.cpu_count() or 1,
                results=Path(folder),
                progress=progress,
            )
    print_report(compaction, compact_text.to_text, output=output)
