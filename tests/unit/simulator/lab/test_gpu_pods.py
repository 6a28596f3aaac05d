import pytest

from roost.errors import BadFile
from roost.simulator.lab.gpu_pods import Pod, read_durations, read_nodes, read_pods
from tests.unit.simulator.lab.gpu_files import NODES, PODS, write


def test_nodes_and_pods_are_sorted_by_name(tmp_path):
    nodes, pods = write(tmp_path, nodes=NODES, pods=PODS)
    assert [node.name for node in read_nodes(nodes)] == ["a", "b", "c"]
    assert read_pods(pods) == [
        Pod(4000, 4096, 1, 500, "T4||G2"),
        Pod(2000, 2048, 2, 1000),
        Pod(500, 512, 0, 0),  # Without GPUs, their amount and models do not count.
        Pod(1000, 1024, 1, 1000),  # A GPU has at most 1,000.
    ]
    assert read_pods(pods)[0].models == ("T4", "G2")


def test_models_are_optional(tmp_path):
    (pods,) = write(tmp_path, pods="name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,500\n")
    assert read_pods(pods) == [Pod(1, 1, 1, 500)]


TIMED = "name,creation_time,deletion_time\nq,10,40\np,5,5.5\n"


def test_durations_are_in_the_order_of_the_pods(tmp_path):
    (pods,) = write(tmp_path, pods=TIMED)
    assert read_durations(pods) == [0.5, 30.0]


@pytest.mark.parametrize(
    ("read", "text", "problem"),
    [
        (read_durations, TIMED.replace("40", "9"), "9 is before creation_time 10"),
        (read_durations, "name,creation_time\np,1\n", "column deletion_time is missing"),
        (read_nodes, "", "is empty"),
        (read_nodes, "sn,cpu_milli\na,1\n", "column memory_mib is missing"),
        (read_nodes, NODES.replace("\nb,", "\na,"), "a is repeated"),
        (read_nodes, "sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\n", "no node has a GPU"),
        (read_pods, PODS.split("\n", 1)[0], "has a header and no rows"),
        (read_pods, PODS.replace("2,1000", "2,700"), "must be 1000 for a pod with 2 GPUs, got 700"),
        (read_pods, PODS.replace("1,500,T4", "1,0,T4"), "must be 1..2147483647, got 0"),
        (read_pods, PODS.replace("500,512", "0,0"), "the pod requests nothing"),
        (read_pods, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,0,0\n", "no pod requests a GPU"),
        (read_pods, NODES, "column name is missing"),
    ],
)
def test_invalid_files_are_refused_with_the_reason(tmp_path, read, text, problem):
    (path,) = write(tmp_path, file=text)
    with pytest.raises(BadFile, match=r"file\.csv") as caught:
        read(path)
    assert problem in str(caught.value)
