"""How far a replay is, on standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from roost.cli import interrupt
from roost.simulator.replay import Progress

_PLAIN_STEPS = 10  # progress lines where there is no terminal


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show progress on standard error: a bar on a terminal, a few lines elsewhere."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("replay"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("replay", total=None)

        def show(done: int, total: int) -> None:
            interrupt.check()
            bar.update(task, completed=done, total=total)

        yield show


def _lines() -> Progress:
    shown = 0

    def show(done: int, total: int) -> None:
        nonlocal shown
        interrupt.check()
        step = done * _PLAIN_STEPS // total
        if step > shown:
            shown = step
            click.echo(f"replay: {done:,} of {total:,}", err=True)

    return show
