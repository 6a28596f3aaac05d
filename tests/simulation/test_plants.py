"""The simulation finds bugs: each that is planted breaks an invariant with one of a few seeds."""

import pytest

from roost.simulator.cluster.many import course_of
from tests.simulation.plants import OF_ALL_KINDS, PLANTS

_SEEDS = range(40)
_KINDS = ("build", "delete", "start", "stop")


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_found(name, monkeypatch):
    PLANTS[name](monkeypatch)
    kinds = () if name in OF_ALL_KINDS else _KINDS
    found = next((course for seed in _SEEDS if (course := course_of(seed, kinds=kinds)).invariant), None)
    assert found is not None, f"{name} was not found with {len(_SEEDS)} seeds"
    assert found.last
    assert found.invariant != "nothing fails that nobody meant", found.problem
