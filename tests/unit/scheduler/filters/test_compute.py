import math

import pytest

from roost.model.host import HostFacts
from roost.scheduler.filters.compute import Compute, ComputeOptions
from tests.support.fleets.fleets import fleet, host_view, spec

RULE = Compute(ComputeOptions(service_down_time=60))


def verdicts_of(*facts, now_s=1000.0):
    return RULE.keep(host_view(fleet(*facts)), spec(now_s=now_s)).tolist()


@pytest.mark.shows("S022")
def test_disabled_hosts_and_hosts_forced_down_are_refused():
    assert verdicts_of(HostFacts(), HostFacts(is_disabled=True), HostFacts(is_forced_down=True)) == [True, False, False]


@pytest.mark.shows("S022")
def test_a_host_is_down_when_its_last_report_is_older_than_the_setting():
    assert verdicts_of(*[HostFacts(reported_at_s=at) for at in (1000, 940, 939)]) == [True, True, False]


def test_a_host_that_never_reported_counts_as_up():
    assert verdicts_of(HostFacts(reported_at_s=None), now_s=1e9) == [True]


def test_report_too_far_in_the_future_refuses_the_host():
    assert verdicts_of(*[HostFacts(reported_at_s=at) for at in (1060, 1061)]) == [True, False]


def test_verdicts_hold_until_the_first_host_goes_down_or_comes_up():
    view = host_view(fleet(HostFacts(), HostFacts(reported_at_s=990), HostFacts(reported_at_s=1100)))
    until = RULE.holds_until_s(view, spec(now_s=1000.0))
    assert 1039.9 < until < 1040
    now, then, after = (RULE.keep(view, spec(now_s=at)).tolist() for at in (1000, until, math.nextafter(until, 9e9)))
    assert now == then != after
    assert RULE.holds_until_s(host_view(fleet(HostFacts())), spec()) == math.inf
