import numpy as np
import pytest

from roost.engine.ranking.ranks import normalise
from roost.model.host import HostFacts
from roost.scheduler.shape.score_table import ScoreTable
from roost.scheduler.weighers.cpu import Cpu, CpuOptions
from tests.support.fleets.fleets import fleet, hosts, spec

EXAMPLE = [5, 5, 10, 10, 15, 20, 20, 15, 10, 5]


@pytest.mark.shows("S098")
def test_free_virtual_cpus_are_the_weight():
    values = [4.0, 64.0, -2.0]
    assert Cpu(CpuOptions()).raw(hosts(free_vcpus=values), spec()).tolist() == values


def test_low_end_of_the_scale_is_zero():
    assert Cpu.minval == 0.0


@pytest.mark.shows("S145")
def test_example_is_scaled_between_its_lowest_and_highest_value():
    scaled = normalise(np.array(EXAMPLE, dtype=np.float64), low=5.0, high=20.0)
    assert scaled.round(2).tolist() == [0, 0, 0.33, 0.33, 0.67, 1, 1, 0.67, 0.33, 0]


@pytest.mark.shows("S145")
def test_cpu_weights_of_the_example_are_scaled_from_zero():
    state = fleet(*[HostFacts(vcpus_total=count) for count in EXAMPLE])
    totals = ScoreTable(state, spec(), [Cpu(CpuOptions())]).weigh(None, spec()).totals
    assert totals.tolist() == [0.25, 0.25, 0.5, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25]


def test_equal_hosts_with_free_cpus_get_the_full_weight():
    state = fleet(*[HostFacts(vcpus_total=7)] * 2)
    assert ScoreTable(state, spec(), [Cpu(CpuOptions())]).weigh(None, spec()).totals.tolist() == [1.0, 1.0]
