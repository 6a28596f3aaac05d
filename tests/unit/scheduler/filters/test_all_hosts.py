import pytest

from roost.scheduler.filters.all_hosts import AllHosts
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import hosts, spec


@pytest.mark.shows("S017")
def test_every_host_passes():
    rule = AllHosts(NoOptions())
    assert rule.keep(hosts(num_instances=[0, 9, 99]), spec()).tolist() == [True, True, True]
    assert not rule.concerns(spec())
