"""``roost lab``: published experiments, repeated with Roost's scheduler."""

import os
import tempfile
from contextlib import nullcontext
from pathlib import Path

import click

from roost.cli.options import PATH
from roost.cli.output.output_options import Output, output_options
from roost.cli.replays.compare_policies import parse_seeds, print_report
from roost.cli.text.lab_text import to_text
from roost.cli.text.progress import progress_bar
from roost.simulator.lab import gpu_comparison
from roost.simulator.lab.gpu_policies import POLICIES
from roost.simulator.lab.gpu_runs import plan_runs, run_missing
from roost.simulator.report import translate_write_errors

_FGD_HELP = """Fill a fleet of GPUs under several policies, and compare how much of it each one can allocate.

NODES is the list of the fleet's nodes, and PODS are one or more lists of pods, in the format of openb: see
docs/lab.md. Pods arrive in a random order and never leave, until 130 % of the GPUs were requested. This is the
experiment of "Beware of Fragmentation" (USENIX ATC 2023), with its random numbers: with equal files and seeds, the
results are equal to the published ones.
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
    expected: Path | None,
    jobs: int | None,
    results: Path | None,
    plot: Path | None,
    output: Output,
) -> None:
    """Run ``roost lab fgd``."""
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
        )
        with progress_bar("lab") as progress:
            found, runs_found = run_missing(runs, jobs=jobs or os.cpu_count() or 1, progress=progress)
    if plot is not None:
        from roost.simulator.lab.gpu_plots import draw

        paths = draw(runs, found, plot)
        click.echo(f"lab: wrote {len(paths)} plots to {plot}", err=True)
    print_report(gpu_comparison.compare(runs, found, expected=published, runs_found=runs_found), to_text, output=output)
