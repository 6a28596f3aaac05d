"""Random failures from a seed. Once they end, all operations end and nothing is leaked."""

import pytest

from tests.support.conductors.troubled_worlds import Changing, comes_to_rest, held_where_they_run

EVENTS = 150


@pytest.mark.parametrize("seed", range(20))
def test_all_operations_end_after_random_failures(seed, capfd):
    comes_to_rest(Changing(seed), held_where_they_run, events=EVENTS)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.soak
def test_all_operations_end_after_random_failures_of_many_seeds():
    for seed in range(20, 2000):
        comes_to_rest(Changing(seed), held_where_they_run, events=EVENTS)
