"""``roost demo``: place requests on a generated fleet, and explain a refusal."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from roost.cli.text.decide_text import stage_lines
from roost.cli.text.progress import progress_bar
from roost.cli.text.replay_text import to_text
from roost.cli.text.tables import Table, align
from roost.cli.views.findings_view import format_finding
from roost.engine.columns.types import Amounts
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, Fleet
from roost.model.request import Request
from roost.simulator.replay import ReplayTarget
from roost.simulator.replay import replay as run_replay
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options

_RECIPE = Recipe()


@click.command("demo", short_help="Place requests on a generated fleet.")
@click.option("--host-count", default=_RECIPE.hosts, show_default=True, help="Number of hosts.")
@click.option("--requests", default=_RECIPE.requests, show_default=True, help="Number of requests.")
@click.option("--seed", default=_RECIPE.seed, show_default=True, help="Seed of the generator.")
def demo(*, host_count: int, requests: int, seed: int) -> None:
    """Place a generated workload with the real scheduler, in a temporary SQLite database.

    A request counts as placed after the commit of its claim. Print a report, one granted and one refused decision, and
    the result of an audit of the database.
    """
    from roost.app import audit_path, open_roost

    workload = generate(Recipe(hosts=host_count, requests=requests, seed=seed), Options())
    with tempfile.TemporaryDirectory(prefix="roost-demo-") as folder:
        with (
            open_roost(None, Path(folder), environ=os.environ, is_scratch=True) as roost,
            progress_bar("replay") as progress,
        ):
            recorder = _SampleRecorder(roost)
            report = run_replay(workload, recorder, progress=progress)
        findings = audit_path(Path(folder))
    click.echo(to_text(report), nl=False)
    if recorder.granted is not None:
        click.echo(f"\nA granted decision:\n{_format_granted(recorder.granted)}")
    if recorder.refused is not None:
        click.echo(f"\nA refused decision:\n{_format_refused(recorder.refused)}")
    for finding in findings:
        click.echo(f"audit: {format_finding(finding)}", err=True)
    click.echo(f"\nAudit of the database: {len(findings):,} findings.")
    if findings:
        raise click.ClickException("the database breaks a rule")


class _SampleRecorder:
    """A scheduler that keeps one granted and one refused decision as samples."""

    def __init__(self, target: ReplayTarget) -> None:
        self._target = target
        self.granted: Decision | None = None
        self.refused: Decision | None = None

    def install(self, fleet: Fleet) -> None:
        """Create the fleet."""
        self._target.install(fleet)

    def utilisation(self) -> dict[str, tuple[int, int]]:
        """Return used amount and capacity by class."""
        return self._target.utilisation()

    def free_by_provider(self, resource_class: str) -> Amounts:
        """Return the free amounts of a class: int64, shape (providers with inventory of the class,)."""
        return self._target.free_by_provider(resource_class)

    def work(self, acts: Sequence[Request | Departure]) -> list[Decision | None]:
        """Do the acts, and keep samples."""
        decisions = self._target.work(acts)
        for decision in decisions:
            if decision is None:
                continue
            if decision.is_granted:
                self.granted = decision
            elif self.refused is None or len(decision.reason) >= len(self.refused.reason):
                self.refused = decision
        return decisions


def _format_granted(decision: Decision) -> str:
    table: Table = [("host", "total", *(scale.weigher for scale in decision.scales))]
    cells = decision.table()
    for score in decision.best:
        parts = (f"{cell.contribution:.4f}" for cell in cells[score.host])
        table.append((score.host, f"{score.total:.4f}", *parts))
    return "\n".join([f"  {decision.uuid}: {decision.picks[0].host}", *align(table)])


def _format_refused(decision: Decision) -> str:
    lines = [f"  {decision.uuid}: {decision.reason}", *stage_lines(decision.stages)]
    return "\n".join(line.rstrip() for line in lines)
