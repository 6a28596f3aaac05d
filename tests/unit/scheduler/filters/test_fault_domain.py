from roost.model.host import HostFacts
from roost.scheduler.filters.fault_domain import FaultDomain
from roost.scheduler.framework.group_slots import place_number
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, group, host_view, spec

RULE = FaultDomain(NoOptions())


def verdicts_of(places, domain):
    server_group = group("fault-domain")
    server_group.places.update({place_number(rack): (place_number(holder), 1) for rack, holder in places.items()})
    view = host_view(fleet(*[HostFacts(rack=rack) for rack in ("r1", "r2", "")]))
    return RULE.keep(view, spec(group=server_group, hints={"fault_domain": domain})).tolist()


def test_racks_of_other_domains_are_refused():
    assert verdicts_of({"r1": "a"}, "a") == [True, True, False]
    assert verdicts_of({"r1": "a"}, "b") == [False, True, False]


def test_host_without_a_rack_is_refused():
    assert verdicts_of({}, "a") == [True, True, False]


def test_concerns_only_the_fault_domain_policy():
    assert [RULE.concerns(spec(group=group(policy))) for policy in ("fault-domain", "affinity")] == [True, False]
