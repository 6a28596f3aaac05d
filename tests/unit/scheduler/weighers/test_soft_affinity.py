import msgspec
import pytest

from roost.model.host import HostFacts
from roost.scheduler.weighers.soft_affinity import SoftAffinity, SoftAffinityOptions
from tests.support.fleets.fleets import fleet, group, host_view, spec

RULE = SoftAffinity(SoftAffinityOptions())


@pytest.mark.shows("S103")
def test_members_on_the_host_are_the_weight():
    request = spec(group=group("soft-affinity", {1: 3}))
    assert RULE.raw(host_view(fleet(*[HostFacts()] * 3)), request).tolist() == [0.0, 3.0, 0.0]


def test_concerns_only_the_soft_affinity_policy():
    policies = ("soft-affinity", "soft-anti-affinity", "affinity")
    assert [policy for policy in policies if RULE.concerns(spec(group=group(policy)))] == ["soft-affinity"]


def test_multiplier_cannot_be_negative():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"soft_affinity_weight_multiplier": -1.0}, SoftAffinityOptions)
