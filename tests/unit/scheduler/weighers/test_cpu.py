from roost.scheduler.weighers.cpu import Cpu, CpuOptions
from tests.fleets import hosts, spec


def test_free_virtual_cpus_are_the_weight():
    values = [4.0, 64.0, -2.0]
    assert Cpu(CpuOptions()).raw(hosts(free_vcpus=values), spec()).tolist() == values


def test_free_processors_below_nothing_are_the_low_end():
    assert Cpu.minval == 0.0
