import pytest

from roost.model.host import HostFacts
from roost.model.request import Move
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinity
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, group, host_view, spec, uuid_text

RULE = ServerGroupAffinity(NoOptions())


def verdicts_of(members):
    return RULE.keep(host_view(fleet(*[HostFacts()] * 3)), spec(group=group("affinity", members))).tolist()


@pytest.mark.shows("S039")
def test_only_hosts_with_a_member_are_accepted():
    assert verdicts_of({1: 4}) == [False, True, False]


def test_the_first_member_may_go_anywhere():
    assert verdicts_of({}) == [True, True, True]


@pytest.mark.parametrize("rows", [[0], [1], [2], [0, 2]])
def test_hosts_of_a_move_are_judged_alone_as_among_all(rows):
    move = spec(group=group("affinity", {1: 2}), move=Move(instance_uuid=uuid_text(1)))
    verdicts = RULE.keep(host_view(fleet(*[HostFacts()] * 3), rows), move)
    assert verdicts.tolist() == [row == 1 for row in rows]


def test_concerns_only_the_affinity_policy():
    assert [RULE.concerns(spec(group=group(policy))) for policy in ("affinity", "soft-affinity")] == [True, False]
