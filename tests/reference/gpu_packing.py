"""The slow twin of the packing lab: hosts as plain values, and every score computed host by host, in plain Python."""

import math
from collections import Counter
from dataclasses import dataclass, field

from roost.simulator.lab.gpu_pods import Node, Pod

SHARED = "share"


@dataclass
class Host:
    """A node with its free amounts, and the kinds of the pods on it."""

    cpu: int
    memory: int
    model: str
    free: list[int]
    tags: set[str] = field(default_factory=set)

    def gpus_for(self, pod: Pod) -> list[int]:
        """Return the GPUs of which each can serve a GPU of the pod."""
        return [at for at, free in enumerate(self.free) if free >= pod.gpu_milli]

    def fits(self, pod: Pod) -> bool:
        """Return whether the pod fits."""
        if self.cpu < pod.cpu_milli or self.memory < pod.memory_mib:
            return False
        if not pod.gpu_count:
            return True
        allowed = not pod.models or self.model in pod.models
        return allowed and len(self.gpus_for(pod)) >= pod.gpu_count

    def after(self, pod: Pod, gpus: list[int]) -> "Host":
        """Return the host with the pod on these GPUs."""
        free = [amount - pod.gpu_milli if at in gpus else amount for at, amount in enumerate(self.free)]
        tags = self.tags | ({tag_of(pod)} if pod.gpu_count else set())
        return Host(self.cpu - pod.cpu_milli, self.memory - pod.memory_mib, self.model, free, tags)


def host_of(node: Node) -> Host:
    return Host(node.cpu_milli, node.memory_mib, node.model, [1000] * node.gpu_count)


def tag_of(pod: Pod) -> str:
    return SHARED if pod.gpu_milli < 1000 else str(pod.gpu_count)


def typical_pods(pods: list[Pod]) -> list[tuple[tuple[int, int, int, str], float]]:
    """Return the typical kinds (processors, GPU milli, GPUs, models) with their shares."""
    counts = Counter((pod.cpu_milli, pod.gpu_milli, pod.gpu_count, pod.gpu_spec) for pod in pods)
    found: list[tuple[tuple[int, int, int, str], int]] = []
    covered = 0
    for count, kind in sorted(((count, kind) for kind, count in counts.items()), reverse=True):
        if covered >= 0.95 * len(pods):
            break
        covered += count
        found.append((kind, count))
    scale = covered / len(pods)
    return [(kind, count / len(pods) / scale) for kind, count in found]


def causes(host: Host, typical) -> list[float]:
    """Return the unusable milli of a host by cause, without the usable part."""
    bins = [0.0] * 7
    left = sum(host.free)
    for (cpu, milli, count, spec), share in typical:
        has_cpu = host.cpu >= cpu
        if not count:
            bins[4 if has_cpu else 5] += share * left
            continue
        models = [model for model in spec.split("|") if model]
        if models and host.model not in models:
            bins[6] += share * left
            continue
        has_gpus = sum(free >= milli for free in host.free) >= count
        if has_cpu and has_gpus:
            bins[1] += share * sum(free for free in host.free if free < milli)
        elif has_cpu:
            bins[1] += share * left
        elif has_gpus:
            bins[3] += share * left
        else:
            bins[0] += share * left
    return bins


def unusable(host: Host, typical) -> float:
    """Return the unusable milli of a host, added in the published order."""
    total = 0.0
    for number, amount in enumerate(causes(host, typical)):
        if number != 2:
            total += amount
    return total


def choose_gpus(host: Host, pod: Pod) -> list[int]:
    """Return the GPUs of a pod: the fullest that fits for a part of one, else the first free ones."""
    gpus = host.gpus_for(pod)
    if not pod.gpu_count:
        return []
    if pod.gpu_milli < 1000:
        return [min(gpus, key=lambda at: (host.free[at], at))]
    return gpus[: pod.gpu_count]


def dotprod(host: Host, pod: Pod, _typical) -> int:
    cpu = host.cpu / 128000 * (pod.cpu_milli / 128000)
    gpu = sum(host.free) / 8000 * (pod.total_milli / 8000)
    return int(100 * (1 - (cpu + gpu) / 2))


def gpuclustering(host: Host, pod: Pod, _typical) -> int:
    if not pod.gpu_count:
        return 0
    score = 25 * (8000 - sum(host.free)) // 8000
    if tag_of(pod) in host.tags:
        return score + (75 if len(host.tags) == 1 else 50)
    return score + (0 if host.tags else 25)


def gpupacking(host: Host, pod: Pod, _typical) -> int:
    if not pod.gpu_count:
        return 0
    count = len(host.free)
    if all(free == 1000 for free in host.free):
        return max(33 - count, count)
    used = sorted(free for free in host.free if free >= pod.gpu_milli)[: pod.gpu_count]
    new = used.count(1000)
    return max(50 - new, 33) if new else max(100 - sum(free * 100 // 1000 for free in used) // 10, 50)


def bestfit(host: Host, pod: Pod, _typical) -> int:
    cpu = (host.cpu - pod.cpu_milli) / 128000
    gpu = (sum(host.free) - pod.total_milli) / 8000
    return int(100 * (1 - (cpu * 0.5 + gpu * 0.5)))


def gradient(host: Host, pod: Pod, typical, gpus: list[int]) -> int:
    """Return the score of a pod on some GPUs of a host."""
    change = unusable(host, typical) - unusable(host.after(pod, gpus), typical)
    return int(100 * (1 / (1 + math.exp(-change / 1000))))


def best_gpus(host: Host, pod: Pod, typical) -> list[int]:
    if not 0 < pod.gpu_milli < 1000:
        return choose_gpus(host, pod)
    return [max(host.gpus_for(pod), key=lambda at: (gradient(host, pod, typical, [at]), -at))]


def fgd(host: Host, pod: Pod, typical) -> int:
    return gradient(host, pod, typical, best_gpus(host, pod, typical))


SCORES = {each.__name__: each for each in (dotprod, gpuclustering, gpupacking, bestfit, fgd)}


def place(hosts: list[Host], pod: Pod, policy: str, typical) -> int | None:
    """Place a pod on the first of the best hosts; return it, None if the pod fits nowhere."""
    fitting = [at for at, host in enumerate(hosts) if host.fits(pod)]
    if not fitting:
        return None
    best = max(fitting, key=lambda at: (SCORES[policy](hosts[at], pod, typical), -at))
    gpus = best_gpus(hosts[best], pod, typical) if policy == "fgd" else choose_gpus(hosts[best], pod)
    hosts[best] = hosts[best].after(pod, gpus)
    return best


def run(nodes: list[Node], arrivals: list[Pod], all_pods: list[Pod], policy: str):
    """Let pods arrive; return the number of refused ones, and the points of load, allocated and unusable percent.

    The last point is the published figure: means over all arrivals at a load of 130 %.
    """
    hosts, typical = [host_of(node) for node in nodes], typical_pods(all_pods)
    capacity = sum(sum(host.free) for host in hosts)
    refused = arrived = 0
    points: dict[int, tuple[float, float]] = {}
    at_load: list[tuple[float, float]] = []
    for pod in arrivals:
        before = round(arrived / capacity * 100)
        arrived += pod.total_milli
        refused += place(hosts, pod, policy, typical) is None
        load = round(arrived / capacity * 100)
        if load == before and load != 130:
            continue
        left = sum(sum(host.free) for host in hosts)
        point = (
            round(100 * (capacity - left) / capacity, 2),
            100 * sum(unusable(h, typical) for h in hosts) / capacity,
        )
        points[load] = point
        if load == 130:
            at_load.append(point)
    return refused, points, at_load
