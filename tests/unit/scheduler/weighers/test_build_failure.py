import pytest

from roost.scheduler.weighers.build_failure import BuildFailure, BuildFailureOptions
from tests.support.fleets.fleets import hosts, spec


@pytest.mark.shows("S105")
def test_failures_in_a_row_are_the_weight():
    values = [0, 3, 1]
    assert BuildFailure(BuildFailureOptions()).raw(hosts(failed_builds=values), spec()).tolist() == values


@pytest.mark.shows("S105")
def test_the_configured_value_counts_negatively_from_wherever_it_comes():
    assert (BuildFailure(BuildFailureOptions()).multiplier, BuildFailure.sign) == (-1_000_000.0, -1.0)
