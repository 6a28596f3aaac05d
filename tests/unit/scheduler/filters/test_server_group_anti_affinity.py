import pytest

from roost.engine.columns.apply import apply
from roost.model.host import HostFacts
from roost.model.writes import Claim, ConsumerRow, InstanceRow
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinity
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, group, hosts_of, spec, uuid_of, uuid_text

RULE = ServerGroupAntiAffinity(NoOptions())


def kept(members, **other):
    return RULE.keep(hosts_of(fleet(*[HostFacts()] * 3)), spec(group=group("anti-affinity", members, **other))).tolist()


@pytest.mark.shows("S038")
def test_a_host_with_a_member_is_refused():
    assert kept({1: 1}) == [True, False, True]


@pytest.mark.shows("S038")
def test_the_group_may_allow_more_members_a_host():
    assert kept({0: 1, 1: 2}, limit=2) == [True, False, True]


def test_an_instance_that_moves_may_stay_where_it_is():
    state = fleet(*[HostFacts()] * 3)
    consumer, instance = ConsumerRow(1, uuid_of(7), "", ""), InstanceRow(1, 102, 0)
    apply(state, Claim([consumer], [], instances=[instance]))
    wanted = spec(group=group("anti-affinity", {0: 1, 1: 1}), moved_uuid=uuid_text(7))
    assert RULE.keep(hosts_of(state), wanted).tolist() == [False, True, True]


def test_other_policies_do_not_concern_it():
    assert [RULE.concerns(spec(group=group(policy))) for policy in ("anti-affinity", "affinity")] == [True, False]
    assert not RULE.concerns(spec())
