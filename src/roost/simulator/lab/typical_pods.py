"""The typical pods of a workload, and the free GPUs of no use to them: fragmentation, by cause.

Source:
    Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
    USENIX ATC 2023.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Mask, Scores
from roost.simulator.lab.gpu_pods import Pod

# Why a typical pod cannot use the free GPUs of a host, in the order of the published sum.
CAUSES = (
    "too few processors and GPUs",
    "GPUs too full",
    "usable",
    "too few processors",
    "pod without GPUs fits",
    "pod without GPUs lacks processors",
    "model not allowed",
)
_BOTH_SHORT, _GPU_SHORT, _USABLE, _CPU_SHORT, _NO_GPU_FITS, _NO_GPU_SHORT, _MODEL = range(len(CAUSES))
# Typical pods are the most frequent kinds that make up this share of all pods: 95 %.
_COVERED = 0.95
_KNOWN_MAX = 50_000  # kept totals of states, some 300 bytes each
_CHUNK = 1_024  # hosts measured at once, so that the work fits the processor's cache


class PodKind(msgspec.Struct, frozen=True):
    """Pods with equal needs, except for memory."""

    cpu_milli: int
    gpu_milli: int
    gpu_count: int
    gpu_spec: str = ""


class TypicalPod(msgspec.Struct, frozen=True):
    """A kind of pods with its share of all typical pods, 0 to 1."""

    kind: PodKind
    share: float


def find_typical_pods(pods: Sequence[Pod]) -> list[TypicalPod]:
    """Return the typical pods of a workload: most frequent first, and of equals the largest.

    Pods without GPUs count too.
    """
    counts = Counter(PodKind(pod.cpu_milli, pod.gpu_milli, pod.gpu_count, pod.gpu_spec) for pod in pods)
    ranked = sorted(counts.items(), key=lambda item: (item[1], *msgspec.structs.astuple(item[0])), reverse=True)
    wanted, covered = _COVERED * len(pods), 0
    taken: list[tuple[PodKind, int]] = []
    for kind, count in ranked:
        if covered >= wanted:
            break
        covered += count
        taken.append((kind, count))
    # Shares of all pods, scaled to a sum of 1, as published: another rounding changes ties, and with them the results.
    scale = covered / len(pods)
    return [TypicalPod(kind, count / len(pods) / scale) for kind, count in taken]


class HostState(NamedTuple):
    """What the typical pods could use of a host."""

    cpu: float  # free milli of processors
    model: int  # number of the GPU model
    free: tuple[int, ...]  # free milli of each GPU, rising; 0 where there is none


class Fragmentation:
    """Measures the free GPU milli of hosts without use for the typical pods.

    Args:
        typical: the typical pods.
        models: the GPU models of the fleet; hosts refer to them by number.
    """

    def __init__(self, typical: Sequence[TypicalPod], models: Sequence[str]) -> None:
        kinds = [each.kind for each in typical]
        self._shares: Scores = np.array([each.share for each in typical])[:, np.newaxis]
        self._cpu = np.array([kind.cpu_milli for kind in kinds])[:, np.newaxis]
        self._count = np.array([kind.gpu_count for kind in kinds])[:, np.newaxis]
        # The free amount of each GPU is compared with the few different amounts, not with each kind.
        self._sizes, self._size_of = np.unique([kind.gpu_milli for kind in kinds], return_inverse=True)
        self._needs_gpu: Mask = self._count > 0
        named = [Pod(0, 0, kind.gpu_count, kind.gpu_milli, kind.gpu_spec).models for kind in kinds]
        self._allowed: Mask = np.array(
            [[not allowed or model in allowed for model in models] for allowed in named], dtype=np.bool_
        )
        self._known: dict[HostState, float] = {}  # see ``totals_of``
        # Cause by verdict: 4 with GPUs, 2 enough GPUs, 1 enough processors.
        self._cause_of = np.array(
            [_NO_GPU_SHORT, _NO_GPU_FITS, _NO_GPU_SHORT, _NO_GPU_FITS, _BOTH_SHORT, _GPU_SHORT, _CPU_SHORT, _GPU_SHORT]
        )

    def by_cause(self, *, cpu: Scores, model: Amounts, free: Amounts) -> Scores:
        """Return the unusable GPU milli of hosts, averaged over the typical pods.

        Args:
            cpu: float64, shape (hosts,): free milli of processors.
            model: int64, shape (hosts,): number of the GPU model.
            free: int64, shape (hosts, GPUs): free milli of each GPU; 0 where there is none.

        Returns:
            float64, shape (causes, hosts), in the order of ``CAUSES``; the usable part is 0.
        """
        chunks = [
            self._measure(cpu[at : at + _CHUNK], model[at : at + _CHUNK], free[at : at + _CHUNK])
            for at in range(0, max(len(cpu), 1), _CHUNK)
        ]
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)

    def total(self, *, cpu: Scores, model: Amounts, free: Amounts) -> Scores:
        """Return the sum of ``by_cause`` over all causes: float64, shape (hosts,)."""
        return sum_causes(self.by_cause(cpu=cpu, model=model, free=free))

    def totals_of(self, states: Sequence[HostState]) -> list[float]:
        """Return the same as ``total`` for single states of hosts, each measured once: hosts are often alike."""
        known = self._known
        if len(known) >= _KNOWN_MAX:
            known.clear()
        missing = list({state for state in states if state not in known})
        if missing:
            found = self.total(
                cpu=np.array([state.cpu for state in missing], dtype=np.float64),
                model=np.array([state.model for state in missing], dtype=np.int64),
                free=np.array([state.free for state in missing], dtype=np.int64),
            )
            known.update(zip(missing, found.tolist(), strict=True))
        return [known[state] for state in states]

    def _measure(self, cpu: Scores, model: Amounts, free: Amounts) -> Scores:
        left = free.sum(axis=1)
        by_gpu = free.T[:, np.newaxis, :]
        is_enough: Mask = by_gpu >= self._sizes[:, np.newaxis]
        count = np.add.reduce(is_enough, axis=0, dtype=np.int64)[self._size_of]
        held = np.add.reduce(is_enough * by_gpu, axis=0)[self._size_of]
        has_cpu: Mask = cpu >= self._cpu
        has_gpus: Mask = count >= self._count
        cause = self._cause_of[4 * self._needs_gpu + 2 * has_gpus + has_cpu]
        is_allowed = self._allowed[:, model]
        cause[self._needs_gpu & ~is_allowed] = _MODEL
        # Of a host with room for a pod, the GPUs that are too full for it are unusable, and the others are usable.
        has_room = self._needs_gpu & is_allowed & has_gpus & has_cpu
        amounts = self._shares * np.where(has_room, left - held, left)
        parts = np.zeros((len(cause), len(CAUSES), len(cpu)))
        parts[np.arange(len(cause))[:, np.newaxis], cause, np.arange(len(cpu))] = amounts
        # The published sum adds kind by kind, and its rounding decides ties: this axis is added in order.
        causes: Scores = np.add.reduce(parts, axis=0)
        return causes


def sum_causes(parts: Scores) -> Scores:
    """Add the causes in the published order: shape (causes, hosts) to shape (hosts,)."""
    total: Scores = parts[0]
    for cause in range(1, len(CAUSES)):
        if cause != _USABLE:
            total = total + parts[cause]
    return total
