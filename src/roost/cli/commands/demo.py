"""``roost demo``: place requests on a generated fleet, and explain a refusal."""

import os
import random
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from roost.cli.options import PATH
from roost.cli.text.decide_text import stage_lines
from roost.cli.text.progress import progress_bar
from roost.cli.text.reason_words import refusal_words
from roost.cli.text.replay_text import to_text
from roost.cli.text.tables import Table, align
from roost.cli.views.findings_view import format_finding
from roost.engine.columns.types import Amounts
from roost.errors import Conflict
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, Fleet
from roost.model.request import Request
from roost.scheduler.pipeline.budget import lift_search_limit
from roost.simulator.replay import ReplayTarget
from roost.simulator.replay import replay as run_replay
from roost.simulator.traces.filling_requests import fill
from roost.simulator.traces.generated_fleet import generate_fleet
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options

# A fleet that these requests almost fill, so that many refusals are about resources.
_RECIPE = Recipe(hosts=100, requests=3_000)
_SERVED_HOSTS = 10_000


@click.command("demo", short_help="Place requests on a generated fleet.")
@click.option("--host-count", default=_RECIPE.hosts, show_default=True, help="Number of hosts.")
@click.option("--requests", default=_RECIPE.requests, show_default=True, help="Number of requests.")
@click.option("--seed", default=_RECIPE.seed, show_default=True, help="Seed of the generator.")
@click.option("--data", type=PATH, metavar="FOLDER", help="Folder for a new database.  [a new temporary folder]")
@click.option("--serve", "is_served", is_flag=True, help="Fill a fleet, serve it with traffic, and show its dashboard.")
@click.option("--listen", default="127.0.0.1:8780", show_default=True, help="Address of the server, with --serve.")
@click.pass_context
def demo(
    context: click.Context,
    *,
    host_count: int,
    requests: int,
    seed: int,
    data: Path | None,
    is_served: bool,
    listen: str,
) -> None:
    """Place a generated workload with the real scheduler, in a new SQLite database.

    A request counts as placed after the commit of its claim. Print a report, one granted and one refused decision, and
    the result of an audit of the database. The database stays, and the last lines are commands to explore it.

    With --serve, fill a fleet of 10,000 hosts instead, until most of its memory is used. Then serve it with requests
    and departures, until you press Ctrl-C.
    """
    from roost.app import audit_path, open_roost

    if is_served:
        if context.get_parameter_source("requests") is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError("--requests cannot be combined with --serve")
        is_default = context.get_parameter_source("host_count") is click.core.ParameterSource.DEFAULT
        serve_demo(_SERVED_HOSTS if is_default else host_count, seed=seed, data=data, listen=listen)
        return

    workload = generate(Recipe(hosts=host_count, requests=requests, seed=seed), Options())
    with _new_folder(data) as folder:
        with (
            open_roost(None, folder, environ=os.environ, is_scratch=True) as roost,
            lift_search_limit(roost.state),
            progress_bar("requests") as progress,
        ):
            recorder = _SampleRecorder(roost)
            report = run_replay(workload, recorder, progress=progress)
        findings = audit_path(folder)
    click.echo(to_text(report), nl=False)
    if recorder.granted is not None:
        click.echo(f"\nA granted decision:\n{_format_granted(recorder.granted)}")
    if recorder.refused is not None:
        click.echo(f"\nA refused decision:\n{_format_refused(recorder.refused)}")
    for finding in findings:
        click.echo(f"audit: {format_finding(finding)}", err=True)
    click.echo(f"\nAudit of the database: {len(findings):,} findings.\n\n{_next_commands(folder, recorder)}")
    if findings:
        raise click.ClickException("the database breaks a rule")


def serve_demo(host_count: int, *, seed: int, data: Path | None, listen: str) -> None:
    """Fill a fleet, then serve it with traffic until an interruption."""
    from roost.api.server.listener import listen_on
    from roost.app import open_roost
    from roost.simulator.demo_server import DemoServer

    listen_on("listen", listen).close()  # An address that cannot be used is an error before the fleet is filled.
    fleet = generate_fleet(host_count, rng=random.Random(f"{seed}/fleet"), groups=[])
    with (
        _new_folder(data) as folder,
        open_roost(None, folder, environ=os.environ, is_scratch=True) as roost,
        lift_search_limit(roost.state),
        progress_bar("filling") as progress,
    ):
        roost.install(fleet)
        for share in fill(roost, rng=random.Random(f"{seed}/filling")):
            progress(round(100 * share), 100)
    with DemoServer(folder, listen=listen) as server:
        click.echo(f"{host_count:,} hosts, with requests and departures. The database is in {folder}.")
        click.echo(f"Open {server.address}/ui/ in a browser. Press Ctrl-C to end.")
        server.send_traffic(rng=random.Random(f"{seed}/traffic"))


@contextmanager
def _new_folder(data: Path | None) -> Iterator[Path]:
    """Yield a folder without a database. A temporary one is deleted after an error, and stays otherwise.

    Raises:
        Conflict: the folder has a database already.
    """
    from roost.app import exists

    if data is not None:
        if exists(data / "roost.db"):
            raise Conflict(f"{data} has a database already: name another folder with --data")
        yield data
        return
    folder = Path(tempfile.mkdtemp(prefix="roost-demo-"))
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _next_commands(folder: Path, recorder: "_SampleRecorder") -> str:
    """Return the commands to try next, as they can be typed in this shell."""
    program = "roost"
    if shutil.which(program) is None:
        is_script = Path(sys.argv[0]).name == program
        program = shlex.quote(sys.argv[0]) if is_script else f"{shlex.quote(sys.executable)} -m roost"
    data = f"--data {shlex.quote(str(folder))}"
    lines = [f"The database stays in {folder}. Try next:"]
    if recorder.refused is not None:
        lines.append(f"  {program} why last-refused {data}")
    lines.append(f"  {program} capacity --flavor vcpus=4,memory_mb=8192,root_gb=80 {data}")
    lines.append(f"  {program} host list {data}")
    lines.append(f"See it in a browser, at http://127.0.0.1:8780/ui/, with:\n  {program} up {data}")
    return "\n".join(lines)


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
                if self.granted is None or len(decision.best) >= len(self.granted.best):
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
    stages = ((each.rule, each.before - each.after, each.reason) for each in decision.stages)
    reason = refusal_words(decision.reason, stages)
    lines = [f"  {decision.uuid}: {reason}", *stage_lines(decision.stages)]
    return "\n".join(line.rstrip() for line in lines)
