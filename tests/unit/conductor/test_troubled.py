"""Random failures from a seed. Once they end, all operations end and nothing is leaked."""

import pytest

from tests.support.conductors.fault_worlds import ChangeWorld, check_allocations_match_guests, run_world

EVENTS = 150


@pytest.mark.parametrize("seed", range(20))
def test_all_operations_end_after_random_failures(seed, capfd):
    run_world(ChangeWorld(seed), check_allocations_match_guests, events=EVENTS)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.soak
def test_all_operations_end_after_random_failures_of_many_seeds():
    for seed in range(20, 2000):
        run_world(ChangeWorld(seed), check_allocations_match_guests, events=EVENTS)
