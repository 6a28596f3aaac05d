import pytest

from roost.engine.columns.apply import apply
from roost.model.host import HostFacts
from roost.model.writes import Claim, ConsumerRow, InstanceRow
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinity
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, group, host_view, spec, uuid_of, uuid_text

RULE = ServerGroupAntiAffinity(NoOptions())


def verdicts_of(members, **other):
    return RULE.keep(
        host_view(fleet(*[HostFacts()] * 3)), spec(group=group("anti-affinity", members, **other))
    ).tolist()


@pytest.mark.shows("S038")
def test_a_host_with_a_member_is_refused():
    assert verdicts_of({1: 1}) == [True, False, True]


@pytest.mark.shows("S038")
def test_group_may_allow_several_members_per_host():
    assert verdicts_of({0: 1, 1: 2}, limit=2) == [True, False, True]


def test_moved_instance_may_stay_on_its_host():
    state = fleet(*[HostFacts()] * 3)
    consumer, instance = ConsumerRow(1, uuid_of(7), "", ""), InstanceRow(1, 102, 0)
    apply(state, Claim([consumer], [], instances=[instance]))
    request = spec(group=group("anti-affinity", {0: 1, 1: 1}), moved_uuid=uuid_text(7))
    assert RULE.keep(host_view(state), request).tolist() == [False, True, True]


def test_concerns_only_the_anti_affinity_policy():
    assert [RULE.concerns(spec(group=group(policy))) for policy in ("anti-affinity", "affinity")] == [True, False]
    assert not RULE.concerns(spec())
