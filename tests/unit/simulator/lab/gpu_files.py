"""Small lists of nodes and pods for the lab's tests."""

from random import Random

from roost.simulator.lab.gpu_pods import Node, Pod, Workload

NODES = "sn,cpu_milli,memory_mib,gpu,model\nb,32000,131072,2,T4\na,16000,65536,4,G2\nc,8000,32768,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "p3,1000,1024,1,1500,\n"
    "p0,4000,4096,1,500,T4||G2\n"
    "p1,2000,2048,2,1000,\n"
    "p2,500,512,0,900,T4\n"
)


def write(folder, **texts):
    """Write each text to a file of its name, and return the paths in order."""
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.csv")
        paths[-1].write_text(text, encoding="utf-8")
    return paths


def mixed(seed, *, sizes, nodes=6, pods=150):
    """Return a workload of pods with these sizes, or two GPUs, and random durations."""
    random = Random(seed)
    kinds = [Pod(random.choice([1000, 4000]), 2048, 1, size) for size in sizes] + [Pod(4000, 4096, 2, 1000)]
    return Workload(
        name="w",
        nodes=[Node(f"n{number:02}", 48_000, 262_144, 4, "T4") for number in range(nodes)],
        pods=[random.choice(kinds) for _ in range(pods)],
        durations_s=[random.choice([0.0, 5.0, 40.0, 1000.0]) for _ in range(pods)],
    )
