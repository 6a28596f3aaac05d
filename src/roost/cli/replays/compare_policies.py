"""``roost replay`` with several policies or seeds: parse the options, run the comparison, print it."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from roost.cli.output.output_options import Output
from roost.cli.text.comparison_text import to_text
from roost.cli.text.plain_text import escape_json
from roost.cli.text.progress import progress_bar
from roost.errors import BadRequest
from roost.simulator.compare import compare, policy_names
from roost.simulator.report import ReplayReport, json_file, to_json
from roost.simulator.runs import Policy, Source

Report = TypeVar("Report", bound=msgspec.Struct)
_SEEDS_MAX = 1_000


class ComparisonOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a comparison, and the files to write."""

    source: Source
    configs: tuple[Path, ...]
    seeds: tuple[int | None, ...]
    jobs: int | None  # None: one per processor
    results: Path | None
    data: Path | None
    json_path: str | None
    output: Output
    plot: Path | None


def run_comparison(options: ComparisonOptions) -> None:
    """Run a comparison and print it.

    Raises:
        RoostError: from ``compare``; or a setting is wrong, or a file cannot be written.
    """
    with json_file(None if options.json_path == "-" else options.json_path) as write:
        with progress_bar("replay") as progress:
            comparison = compare(
                options.source,
                read_policies(options.configs),
                seeds=options.seeds,
                jobs=options.jobs or os.cpu_count() or 1,
                results=options.results,
                data=options.data,
                progress=progress,
            )
        write(comparison)
    if options.plot is not None:
        reports = {policy.name: policy.reports for policy in comparison.policies}
        draw_plots(reports, options.plot, title=comparison.workload)
    print_report(comparison, to_text, output=options.output)


def print_report(report: Report, text: Callable[[Report], str], *, output: Output) -> None:
    """Print a report of a replay; JSON has each list of numbers on one line."""
    if output.form == "json":
        click.echo(escape_json(to_json(report)), nl=False)
    else:
        output.print_document(report, lambda: [text(report).removesuffix("\n")])


def check_plots(folder: Path) -> None:
    """Check that plots can be drawn, before hours of work.

    Raises:
        Unavailable: the plotting library is not installed.
        BadFile: the folder is not writable.
    """
    from roost.simulator.plot_style import prepare

    prepare(folder)


def draw_plots(reports: Mapping[str, Sequence[ReplayReport]], folder: Path, *, title: str) -> None:
    """Draw the plots of several policies, and print the folder of the plots."""
    from roost.simulator.plots import draw

    paths = draw(reports, folder, title=title)
    click.echo(f"replay: wrote {len(paths)} plots to {folder}", err=True)


def read_policies(configs: Sequence[Path]) -> list[Policy]:
    """Read the settings of each policy. Without files, there is one policy: the usual settings file or the defaults.

    Raises:
        BadRequest: a file is repeated, or two policies would have the same name.
        BadSettings: a setting is unknown or wrong.
    """
    from roost.app import settings_of

    if not configs:
        return [Policy(name="settings", settings=settings_of(None, os.environ))]
    if len({config.resolve() for config in configs}) < len(configs):
        raise BadRequest("a settings file is repeated: give each policy once")
    settings = [settings_of(config, os.environ) for config in configs]
    pairs = zip(policy_names(configs), settings, strict=True)
    return [Policy(name=name, settings=policy_settings) for name, policy_settings in pairs]


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse seeds: a comma-separated list, a range A..B, or one number N for 1 to N.

    >>> parse_seeds("3"), parse_seeds("5,7"), parse_seeds("42..44")
    ((1, 2, 3), (5, 7), (42, 43, 44))

    Raises:
        BadRequest: the text has another form, repeats a seed, or has more than 1,000.
    """
    span = re.fullmatch(r"([0-9]{1,15})\.\.([0-9]{1,15})", text)
    if span is not None:
        first, last = int(span[1]), int(span[2])
        if not 1 <= last - first + 1 <= _SEEDS_MAX:
            raise BadRequest(f"there must be 1..{_SEEDS_MAX:,} seeds, got {text[:60]}")
        return tuple(range(first, last + 1))
    if not re.fullmatch(r"[0-9]{1,15}(,[0-9]{1,15})*", text):
        raise BadRequest(f"seeds must be comma-separated integers, A..B, or one number N for 1 to N, got {text[:60]!r}")
    numbers = tuple(int(number) for number in text.split(","))
    if len(numbers) == 1:
        numbers = tuple(range(1, min(numbers[0], _SEEDS_MAX + 1) + 1))
    if not 1 <= len(numbers) <= _SEEDS_MAX:
        raise BadRequest(f"there must be 1..{_SEEDS_MAX:,} seeds, got {text[:60]}")
    if len(set(numbers)) < len(numbers):
        raise BadRequest(f"a seed is repeated: {text[:60]}")
    return numbers
