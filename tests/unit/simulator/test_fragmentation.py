import numpy as np
import pytest

from roost.simulator.fragmentation import GpuFragmentation, compute_stranded_share, find_typical_amounts
from roost.simulator.traces.cospot import build_fleet
from roost.simulator.traces.formats import open_workload
from roost.simulator.workload import Options, Stay, build_workload
from tests.unit.simulator.first_fit import FirstFit
from tests.unit.simulator.traces.files import write
from tests.unit.simulator.values import request

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,8000,1000,2,T4\nb,8000,1000,1,P100\nc,8000,1000,0,\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


def openb(folder, *pods):
    text = PODS + "".join(f"p{index},{pod}\n" for index, pod in enumerate(pods))
    return open_workload(write(folder, nodes=NODES, pods=text), Options())


def free_of(gpus, *, vcpus=(8000, 8000, 8000), memory_mb=(1000, 1000, 1000)):
    amounts = {"CUSTOM_GPU_MILLI": gpus, "VCPU": vcpus, "MEMORY_MB": memory_mb}
    return lambda resource_class: np.array(amounts[resource_class], dtype=np.int64)


def test_free_piece_of_the_typical_amount_is_not_stranded():
    assert compute_stranded_share(np.array([3, 4, 5, 0]), 4) == 3 / 12
    assert compute_stranded_share(np.array([0, 0]), 4) == 0.0
    assert compute_stranded_share(np.array([], dtype=np.int64), 4) == 0.0


def test_the_typical_amount_is_the_lower_median_over_instances():
    stays = [
        Stay(request("a", vcpus=2), 0.0),
        Stay(request("b", "c", "d", vcpus=4, memory_mb=8), 1.0),
        Stay(request("e", "f", vcpus=9), 2.0),
    ]
    workload = build_workload(stays, name="", fleet=build_fleet(("1x1c/1m",)), options=Options())
    assert find_typical_amounts(workload) == {"VCPU": 4, "MEMORY_MB": 8}


@pytest.mark.parametrize(
    ("pods", "free", "fragment"),
    [
        # One whole GPU: 600 are left on one of a's two, the others are whole.
        (["1000,10,1,1000,"], free_of([600, 1000, 1000]), 600),
        # Two whole GPUs: neither a nor b has two.
        (["1000,10,2,1000,"], free_of([600, 1000, 1000]), 2600),
        # A fraction fits wherever as much is free.
        (["1000,10,1,500,"], free_of([600, 1000, 400]), 400),
        # Only b has the model, so the GPUs of a are useless.
        (["1000,10,1,500,P100"], free_of([600, 1000, 1000]), 1600),
        (["1000,10,1,500,P100|T4"], free_of([600, 1000, 1000]), 0),
        # a has too few processors, or too little memory, beside its GPUs.
        (["1000,10,1,500,"], free_of([1000, 1000, 1000], vcpus=(999, 8000, 8000)), 2000),
        (["1000,10,1,500,"], free_of([1000, 1000, 1000], memory_mb=(9, 8000, 8000)), 2000),
        # A pod without GPUs can use none; each need is weighted by its frequency.
        (["1000,10,0,0,"], free_of([1000, 1000, 1000]), 3000),
        (["1000,10,0,0,", "1000,10,1,1000,"], free_of([1000, 1000, 600]), (2600 + 600) / 2),
    ],
)
def test_gpu_fragmentation_is_the_expected_unusable_share(tmp_path, pods, free, fragment):
    assert GpuFragmentation(openb(tmp_path, *pods)).share(free) == pytest.approx(fragment / 3000)


def test_free_amounts_are_in_fleet_order(tmp_path):
    workload = openb(tmp_path, "1000,10,1,1000,", "1000,10,1,400,P100")
    scheduling = FirstFit()
    scheduling.install(workload.fleet)
    scheduling.work([event.act for event in workload.events])
    # a: 0 and 1000 free; b: 600 free. Whole: 600 lost. Fraction on P100: 1000 of a lost.
    assert GpuFragmentation(workload).share(scheduling.free_by_provider) == pytest.approx((600 + 1000) / 2 / 3000)
