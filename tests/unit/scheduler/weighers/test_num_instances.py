from roost.scheduler.weighers.num_instances import NumInstances, NumInstancesOptions
from tests.support.fleets.fleets import hosts, spec


def test_the_number_of_instances_is_the_weight():
    values = [0, 9, 2]
    assert NumInstances(NumInstancesOptions()).raw(hosts(num_instances=values), spec()).tolist() == values


def test_weigher_is_off_by_default():
    assert NumInstances(NumInstancesOptions()).multiplier == 0.0
