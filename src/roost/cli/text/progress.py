"""The progress of long commands, on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from roost.cli import signals

Progress = Callable[[int, int], None]  # done, total
_PLAIN_STEPS = 10  # progress lines without a terminal


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Show progress: a bar on a terminal, a few lines elsewhere."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _print_lines(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def show(done: int, total: int) -> None:
            signals.check()
            bar.update(task, completed=done, total=total)

        yield show


def _print_lines(title: str) -> Progress:
    last_step = 0

    def show(done: int, total: int) -> None:
        nonlocal last_step
        signals.check()
        step = done * _PLAIN_STEPS // total
        if step > last_step:
            last_step = step
            click.echo(f"{title}: {done:,} of {total:,}", err=True)

    return show
