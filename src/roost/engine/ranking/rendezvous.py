"""Rendezvous hashing: divide hosts among processes without any agreement between them.

Each pair of a host and a process has a weight, a hash of both numbers. A host belongs to the process with the highest
weight. All processes compute the same owners from the same list. If a process joins or leaves, only its own hosts
change their owner.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roost.engine.columns.types import Mask, Rows

_Hashes = npt.NDArray[np.uint64]
# The increment and the multipliers of the splitmix64 generator, by Steele, Lea and Flood, OOPSLA 2014.
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def owners(host_ids: npt.NDArray[np.int64], processes: Sequence[int]) -> Rows:
    """Return the owner of each host.

    Args:
        host_ids: int64, shape (hosts,).
        processes: distinct numbers, at least one, 0..2**63 - 1.

    Returns:
        intp, shape (hosts,): positions in ``processes``. Of equal weights, the first counts.
    """
    best = np.zeros(len(host_ids), dtype=np.intp)
    highest = weights(host_ids, processes[0])
    for at, process in enumerate(processes[1:], start=1):
        others = weights(host_ids, process)
        is_higher: Mask = others > highest
        best[is_higher] = at
        np.maximum(highest, others, out=highest)
    return best


def weights(host_ids: npt.NDArray[np.int64], process: int) -> _Hashes:
    """Return the weight of one process for each host: uint64, shape (hosts,)."""
    own = _mix(np.array([process], dtype=np.uint64))
    return _mix(host_ids.astype(np.uint64) ^ own)


def _mix(numbers: _Hashes) -> _Hashes:
    """Hash each number, in wrapping arithmetic."""
    mixed = numbers + _INCREMENT
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))
