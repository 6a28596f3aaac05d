"""Roost and the reference are asked the same and answer the same, over HTTP."""

import pytest

from tests.differential import reference, subject
from tests.differential.duel import Duel, Outcome, Side, story
from tests.differential.ladder import ladder
from tests.differential.routes import MINOR_MAX, ROUTES
from tests.differential.scene import Act
from tests.differential.sequences import sequence

SEEDS = range(12)
SOAK_SEEDS = range(1_000, 1_140)
SOAK_EXCHANGES_MIN = 20_000
TOLD_MAX = 5


@pytest.fixture(scope="module")
def duel():
    """Yield both servers, which last as long as this file's tests."""
    if reference.python() is None:
        pytest.skip(reference.HOW_TO_INSTALL)
    if (reason := subject.missing()) is not None:
        pytest.skip(reason)
    with reference.Reference() as theirs, subject.Subject() as ours:
        both = Duel(Side(theirs), Side(ours))
        yield both
        both.close()


def ran(duel: Duel, name: str, act: Act) -> Outcome:
    """Run a sequence; one that shows a difference fails with its story, shortened."""
    outcome = duel.run(act)
    lines = []
    for fault in {fault.kind: fault for fault in reversed(outcome.faults)}.values():
        lines.append(story(fault, duel.subject.server.address))
        lines.append(f"  again: python -m tests.differential {name} --steps 0:{fault.step + 1}")
        if len(lines) <= 2 * TOLD_MAX:
            shortest = duel.shorten(outcome.requests, fault)
            lines += ["  the shortest sequence that shows it:", *(f"    {each.as_curl('$URL')}" for each in shortest)]
    assert not lines, "\n".join([f"{name}: {len(outcome.faults)} differences are not explained", *lines])
    return outcome


@pytest.mark.differential
def test_every_route_gives_equal_answers_in_every_version(duel):
    tally = ran(duel, "--ladder", ladder()).tally
    print(tally.text())
    asked = {(str(route), minor) for route in ROUTES for minor in range(route.since, MINOR_MAX + 1)}
    assert asked <= tally.versions


@pytest.mark.differential
@pytest.mark.parametrize("seed", SEEDS)
def test_request_sequences_get_equal_answers(duel, seed):
    tally = ran(duel, f"--seed {seed}", sequence(seed)).tally
    print(f"seed {seed}\n{tally.text()}")
    # Refusals are cheap to provoke; most of what is compared should be answers.
    assert tally.good >= tally.exchanges / 2


@pytest.mark.soak
def test_many_request_sequences_get_equal_answers(duel):
    tally = ran(duel, "--ladder", ladder()).tally
    for seed in SOAK_SEEDS:
        tally.add(ran(duel, f"--seed {seed}", sequence(seed)).tally)
    print(f"seeds {SOAK_SEEDS.start} to {SOAK_SEEDS.stop - 1}\n{tally.text()}")
    assert tally.exchanges >= SOAK_EXCHANGES_MIN
