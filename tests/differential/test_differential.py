"""Roost and the reference give equal answers to equal requests over HTTP."""

import pytest

from tests.differential import reference, subject
from tests.differential.duel import Duel, Outcome, Side, story
from tests.differential.ladder import ladder
from tests.differential.routes import MINOR_MAX, ROUTES
from tests.differential.scene import Act
from tests.differential.sequences import sequence
from tests.support.missing_programs import skip_test

SEEDS = range(12)
SOAK_SEEDS = range(1_000, 1_140)
SOAK_EXCHANGES_MIN = 20_000
STORIES_MAX = 5


@pytest.fixture(scope="module")
def duel():
    """Yield both servers of this test file."""
    if reference.python() is None:
        skip_test(reference.HOW_TO_INSTALL)
    if (reason := subject.missing()) is not None:
        pytest.skip(reason)
    with reference.Reference() as theirs, subject.Subject() as ours:
        both = Duel(Side(theirs), Side(ours))
        yield both
        both.close()


def run(duel: Duel, name: str, act: Act) -> Outcome:
    """Run a sequence; fail with a shortened story of each kind of difference."""
    outcome = duel.run(act)
    lines = []
    for fault in {fault.kind: fault for fault in reversed(outcome.faults)}.values():
        lines.append(story(fault, duel.subject.server.address))
        lines.append(f"  again: python -m tests.differential {name} --steps 0:{fault.step + 1}")
        if len(lines) <= 2 * STORIES_MAX:
            shortest = duel.shorten(outcome.requests, fault)
            lines += ["  the shortest sequence that shows it:", *(f"    {each.as_curl('$URL')}" for each in shortest)]
    assert not lines, "\n".join([f"{name}: {len(outcome.faults)} differences are not explained", *lines])
    return outcome


@pytest.mark.differential
def test_every_route_gives_equal_answers_in_every_version(duel):
    tally = run(duel, "--ladder", ladder()).tally
    print(tally.text())
    expected = {(str(route), minor) for route in ROUTES for minor in range(route.since, MINOR_MAX + 1)}
    assert expected <= tally.versions


@pytest.mark.differential
@pytest.mark.parametrize("seed", SEEDS)
def test_request_sequences_get_equal_answers(duel, seed):
    tally = run(duel, f"--seed {seed}", sequence(seed)).tally
    print(f"seed {seed}\n{tally.text()}")
    # Refusals are easy to provoke; at least half of the exchanges must be successes.
    assert tally.good >= tally.exchanges / 2


@pytest.mark.soak
def test_many_request_sequences_get_equal_answers(duel):
    tally = run(duel, "--ladder", ladder()).tally
    for seed in SOAK_SEEDS:
        tally.add(run(duel, f"--seed {seed}", sequence(seed)).tally)
    print(f"seeds {SOAK_SEEDS.start} to {SOAK_SEEDS.stop - 1}\n{tally.text()}")
    assert tally.exchanges >= SOAK_EXCHANGES_MIN
