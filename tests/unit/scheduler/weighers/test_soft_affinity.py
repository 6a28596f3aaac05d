import msgspec
import pytest

from roost.model.host import HostFacts
from roost.scheduler.weighers.soft_affinity import SoftAffinity, SoftAffinityOptions
from tests.support.fleets.fleets import fleet, group, hosts_of, spec

RULE = SoftAffinity(SoftAffinityOptions())


@pytest.mark.shows("S103")
def test_members_on_the_host_are_the_weight():
    wanted = spec(group=group("soft-affinity", {1: 3}))
    assert RULE.raw(hosts_of(fleet(*[HostFacts()] * 3)), wanted).tolist() == [0.0, 3.0, 0.0]


def test_other_policies_do_not_concern_it():
    policies = ("soft-affinity", "soft-anti-affinity", "affinity")
    assert [policy for policy in policies if RULE.concerns(spec(group=group(policy)))] == ["soft-affinity"]


def test_its_multiplier_cannot_be_negative():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"soft_affinity_weight_multiplier": -1.0}, SoftAffinityOptions)
