"""Everything goes wrong, by chance from a seed; when that ends, everything comes to rest and nothing is leaked."""

import pytest

from tests.support.conductors.troubled_worlds import Changing, comes_to_rest, held_where_they_run

EVENTS = 150


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_everything_comes_to_rest(seed, capfd):
    comes_to_rest(Changing(seed), held_where_they_run, events=EVENTS)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.soak
def test_whatever_happens_with_many_seeds_everything_comes_to_rest():
    for seed in range(20, 2000):
        comes_to_rest(Changing(seed), held_where_they_run, events=EVENTS)
