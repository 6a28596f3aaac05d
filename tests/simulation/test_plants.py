"""The simulation finds bugs: each that is planted breaks an invariant with one of a few seeds."""

import pytest

from roost.simulator.cluster.many import course_of
from tests.simulation.plants import KINDS_OF, PLANTS

_SEEDS = range(40)


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_found(name, monkeypatch):
    PLANTS[name](monkeypatch)
    courses = (course_of(seed, kinds=KINDS_OF[name]) for seed in _SEEDS)
    found = next((course for course in courses if course.invariant), None)
    assert found is not None, f"{name} was not found with {len(_SEEDS)} seeds"
    assert found.last
    assert found.invariant != "nothing fails that nobody meant", found.problem
