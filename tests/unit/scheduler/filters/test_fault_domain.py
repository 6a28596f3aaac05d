from roost.model.host import HostFacts
from roost.scheduler.filters.fault_domain import FaultDomain
from roost.scheduler.framework.group_slots import place_number
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, group, hosts_of, spec

RULE = FaultDomain(NoOptions())


def kept(places, domain):
    members = group("fault-domain")
    members.places.update({place_number(rack): (place_number(holder), 1) for rack, holder in places.items()})
    view = hosts_of(fleet(*[HostFacts(rack=rack) for rack in ("r1", "r2", "")]))
    return RULE.keep(view, spec(group=members, hints={"fault_domain": domain})).tolist()


def test_racks_of_other_domains_are_refused():
    assert kept({"r1": "a"}, "a") == [True, True, False]
    assert kept({"r1": "a"}, "b") == [False, True, False]


def test_a_host_whose_rack_nobody_told_is_refused():
    assert kept({}, "a") == [True, True, False]


def test_other_policies_do_not_concern_it():
    assert [RULE.concerns(spec(group=group(policy))) for policy in ("fault-domain", "affinity")] == [True, False]
