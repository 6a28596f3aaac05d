import pytest

from roost.scheduler.weighers.build_failure import BuildFailure, BuildFailureOptions
from tests.support.fleets.fleets import hosts, spec


@pytest.mark.shows("S105")
def test_failed_builds_are_the_weight():
    values = [0, 3, 1]
    assert BuildFailure(BuildFailureOptions()).raw(hosts(failed_builds=values), spec()).tolist() == values


@pytest.mark.shows("S105")
def test_multiplier_is_negated():
    assert (BuildFailure(BuildFailureOptions()).multiplier, BuildFailure.sign) == (-1_000_000.0, -1.0)
