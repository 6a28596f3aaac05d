import pytest

from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.request import Request
from roost.model.request import Retry as PastAttempts
from roost.scheduler.filters.retry import Retry
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, host_view, spec
from tests.support.fleets.worlds import chosen_hosts, hosts, roost_with, settings_of


@pytest.mark.shows("S013", "S036")
def test_hosts_of_failed_builds_are_refused():
    rule, state = Retry(NoOptions()), fleet(*[HostFacts()] * 3)
    request = spec(retry=PastAttempts(attempts=2, hosts=(("host-1", "node-1"), ("host-2", "node-3"))))
    assert rule.concerns(request)
    assert rule.keep(host_view(state), request).tolist() == [False, True, True]
    assert rule.reason(request) == "were tried before"


def test_concerns_only_requests_that_tried_a_host():
    rule = Retry(NoOptions())
    assert not rule.concerns(spec())
    assert not rule.concerns(spec(retry=PastAttempts(attempts=1)))


@pytest.mark.shows("S013")
def test_verdict_depends_on_the_hosts_that_were_tried():
    roost = roost_with(hosts(2), settings=settings_of(enabled_filters=["RetryFilter"]))
    flavor = Flavor(name="small", vcpus=1, memory_mb=1)
    for past_hosts, expected in ((), "h0"), ((("h0", "h0"),), "h1"), ((("h1", "h1"),), "h0"):
        decision = roost.decide(Request(flavor=flavor, retry=PastAttempts(attempts=1, hosts=past_hosts)), dry_run=True)
        assert chosen_hosts(decision) == [expected]


@pytest.mark.shows("S014")
def test_request_that_tried_every_host_is_refused():
    roost = roost_with(hosts(2), settings=settings_of(enabled_filters=["RetryFilter"]))
    past_attempts = PastAttempts(attempts=2, hosts=(("h0", "h0"), ("h1", "h1")))
    decision = roost.decide(Request(flavor=Flavor(name="small", vcpus=1, memory_mb=1), retry=past_attempts))
    assert (decision.outcome, decision.reason) == ("refused", "0 of 2 hosts: 2 were tried before")
    assert [(stage.rule, stage.before, stage.after) for stage in decision.stages][-1] == ("retry", 2, 0)
