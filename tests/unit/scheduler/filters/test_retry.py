import pytest

from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.request import Request
from roost.model.request import Retry as Tried
from roost.scheduler.filters.retry import Retry
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, hosts_of, spec
from tests.support.fleets.worlds import chosen, hosts, roost_with, settings_of


@pytest.mark.shows("S013", "S036")
def test_hosts_where_building_failed_are_not_tried_again():
    rule, state = Retry(NoOptions()), fleet(*[HostFacts()] * 3)
    wanted = spec(retry=Tried(attempts=2, hosts=(("host-1", "node-1"), ("host-2", "node-3"))))
    assert rule.concerns(wanted)
    assert rule.keep(hosts_of(state), wanted).tolist() == [False, True, True]
    assert rule.reason(wanted) == "were tried before"


def test_a_first_attempt_and_one_that_names_no_host_concern_nobody():
    rule = Retry(NoOptions())
    assert not rule.concerns(spec())
    assert not rule.concerns(spec(retry=Tried(attempts=1)))


@pytest.mark.shows("S013")
def test_requests_that_differ_in_what_was_tried_are_told_apart():
    roost = roost_with(hosts(2), settings=settings_of(enabled_filters=["RetryFilter"]))
    flavor = Flavor(name="small", vcpus=1, memory_mb=1)
    for tried, left in ((), "h0"), ((("h0", "h0"),), "h1"), ((("h1", "h1"),), "h0"):
        decision = roost.decide(Request(flavor=flavor, retry=Tried(attempts=1, hosts=tried)), dry_run=True)
        assert chosen(decision) == [left]


@pytest.mark.shows("S014")
def test_a_request_that_has_tried_every_host_says_so():
    roost = roost_with(hosts(2), settings=settings_of(enabled_filters=["RetryFilter"]))
    tried = Tried(attempts=2, hosts=(("h0", "h0"), ("h1", "h1")))
    decision = roost.decide(Request(flavor=Flavor(name="small", vcpus=1, memory_mb=1), retry=tried))
    assert (decision.outcome, decision.reason) == ("refused", "0 of 2 hosts: 2 were tried before")
    assert [(stage.rule, stage.before, stage.after) for stage in decision.stages][-1] == ("retry", 2, 0)
