"""``make attack``: attacks on live servers, with measurements by an honest client during each.

Exits with 1 if the honest client got a wrong response or the server used too much memory; without ``--short`` also if
the honest client waited too long.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.attack import questions
from tests.attack.bodies import bodies_of_clients, bodies_of_strangers, many_values
from tests.attack.connections import idle_connections, pipelining
from tests.attack.figures import HEADER, Figures
from tests.attack.fleets import cell_fleet, forest, shared_disk
from tests.attack.names import names_of_an_agent
from tests.attack.pages import cross_site, rebinding
from tests.attack.server import Target, target
from tests.support.fleets.worlds import merge_fleets

DECISION_MS_MAX = 100.0
HEALTHZ_MS_MAX = 50.0
GROWTH_MIB_MAX = 300.0
OBSERVER = {"x-auth-token": "joe", "x-roles": "observer"}
ADMIN = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}

Attack = Callable[[Target, float], Figures]


def _repeat(name: str, headers: dict[str, str], *batch: questions.Question) -> Attack:
    def attack(server: Target, duration_s: float) -> Figures:
        return questions.repeat_questions(server, name, batch, headers=headers, duration_s=duration_s)

    return attack


QUESTIONS: tuple[Attack, ...] = (
    _repeat("nothing heavy", OBSERVER, questions.Question(method="GET", path="/v1/hosts/host-1")),
    _repeat("capacity of a shared disk", OBSERVER, questions.shared_capacity()),
    _repeat("capacity in several ways", OBSERVER, questions.cell_capacity()),
    _repeat("candidates in deep trees", ADMIN, *questions.deep_candidates()),
    _repeat("candidates, client leaves", ADMIN, *questions.deep_candidates(leaves_after_s=0.5)),
    _repeat("billions of candidates", ADMIN, questions.many_candidates()),
    _repeat("1,000 required traits", OBSERVER, questions.many_traits()),
    _repeat("1,000 capabilities", OBSERVER, questions.many_specs()),
    _repeat("dry runs of 100,000 instances", ADMIN, questions.dry_runs()),
)
STRANGERS: tuple[Attack, ...] = (
    lambda server, _: bodies_of_strangers(server),
    lambda server, _: bodies_of_clients(server),
    lambda server, _: many_values(server, value=b"1"),
    lambda server, _: many_values(server, value=b"{}"),
    lambda server, duration_s: pipelining(server, duration_s=duration_s),
    lambda server, _: idle_connections(server),
    lambda server, _: names_of_an_agent(server),
)
PAGES: tuple[Attack, ...] = (lambda server, _: rebinding(server), lambda server, _: cross_site(server))


def attacks(folder: Path, duration_s: float) -> Iterator[Figures]:
    """Yield the figures of each attack; each kind of attack has a server of its own."""
    fleets = merge_fleets(shared_disk(), cell_fleet(), forest())
    (folder / "questions").mkdir()
    with target(folder / "questions", has_tokens=False, others=fleets) as server:
        for attack in (*QUESTIONS, *PAGES):
            yield attack(server, duration_s)
    (folder / "strangers").mkdir()
    with target(folder / "strangers", settings="header_timeout_s = 2.0") as server:
        for attack in STRANGERS:
            yield attack(server, duration_s)


def problems_of(figures: Figures, *, is_timed: bool) -> list[str]:
    """Return the problems of an attack, one sentence each."""
    observations = figures.observations
    problems = list(observations.problems[:3])
    if not observations.decisions:
        problems.append("no decision was answered")
    limits = [(figures.rss_growth_mib, GROWTH_MIB_MAX, "MiB of memory")]
    if is_timed:
        limits += [(observations.decision_ms_max, DECISION_MS_MAX, "ms for a decision")]
        limits += [(observations.healthz_ms_max, HEALTHZ_MS_MAX, "ms for /healthz")]
    problems += [f"{value:.0f} {what}, more than {most:.0f}" for value, most, what in limits if value > most]
    return problems


def main() -> int:
    """Run all attacks and print a table."""
    parser = argparse.ArgumentParser(prog="make attack")
    parser.add_argument("--short", action="store_true", help="one second each, and no limit of time")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each attack goes on")
    arguments = parser.parse_args()
    duration_s = 1.0 if arguments.short else arguments.seconds
    print(HEADER)
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for figures in attacks(Path(folder), duration_s):
            print(figures.row(), flush=True)
            problems += [f"{figures.name}: {each}" for each in problems_of(figures, is_timed=not arguments.short)]
    for each in problems:
        print(each, file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
