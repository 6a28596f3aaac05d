"""Tracks the provider trees with changed candidates, so that cached responses can be invalidated."""

from collections.abc import Callable

import numpy as np

from roost.engine.candidates.anchors import ServingMasks
from roost.engine.candidates.query import CompiledQuery
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask


class TreeWatch:
    """Compares the inputs of one query's candidates with those of the previous search.

    Until ``changes.epoch`` moves, the candidates of a tree without sharing depend on two inputs: the masks of
    serving providers and, where several groups may draw on one provider, the free amounts. Both inputs are
    compared directly, without a log of changes.

    Args:
        forget: called with the provider rows of roots with possibly changed candidates; None: all roots.
    """

    def __init__(self, forget: Callable[[list[int] | None], None]) -> None:
        self._forget = forget
        self._epoch = -1
        self._inputs: list[bytes] | None = None

    def compare(self, state: State, compiled: CompiledQuery, serving: ServingMasks) -> None:
        """Compare the inputs with the stored ones, and store them."""
        inputs, before = [*serving.plain, *serving.kinds], self._inputs
        if not compiled.are_picks_free:
            inputs += [state.inventory(class_id).free.view.tobytes() for class_id in _classes(compiled)]
        is_comparable = self._epoch == state.changes.epoch and before is not None
        self._inputs, self._epoch = inputs, state.changes.epoch
        if not is_comparable:
            self._forget(None)
            return
        assert before is not None
        count = len(state.providers)
        changed: Mask = np.zeros(count, dtype=np.bool_)
        for now, then in zip(inputs, before, strict=True):
            if now != then:
                changed |= _find_differences(now, then, count)
        rows = np.flatnonzero(changed)
        if len(rows):
            self._forget(np.unique(state.providers.root.view[rows]).tolist())


def _classes(compiled: CompiledQuery) -> list[int]:
    groups = compiled.kinds if compiled.plain is None else (compiled.plain, *compiled.kinds)
    return sorted({class_id for group in groups for class_id, _ in group.resources})


def _find_differences(now: bytes, then: bytes, count: int) -> Mask:
    """Return whether the bytes of each of ``count`` providers differ: bool, shape (providers,)."""
    current, previous = (np.frombuffer(body, dtype=np.uint8).reshape(count, -1) for body in (now, then))
    differing: Mask = (current != previous).any(axis=1)
    return differing
