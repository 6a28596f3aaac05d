"""cross_cell: the cell an instance comes from."""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class CrossCellOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``cross_cell``."""

    cross_cell_move_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of staying in the same cell in a move; negative prefers other cells.")
    ] = 1000000.0


class CrossCell:
    """Weigh hosts by their cell when an instance moves and may change it: its own cell first.

    Source:
        nova/scheduler/weights/cross_cell.py.
    """

    name: ClassVar = "cross_cell"
    nova_name: ClassVar = "CrossCellWeigher"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = CrossCellOptions
    aggregate_key: ClassVar = "cross_cell_move_weight_multiplier"
    minval: ClassVar[float | None] = None
    maxval: ClassVar[float | None] = None
    sign: ClassVar = 1.0

    def __init__(self, options: CrossCellOptions) -> None:
        self._options = options

    @property
    def multiplier(self) -> float:
        """The configured multiplier."""
        return self._options.cross_cell_move_weight_multiplier

    def concerns(self, spec: Spec) -> bool:
        """Say whether hosts can differ: only if the destination names a cell and may leave it."""
        return bool(spec.destination and spec.destination.cell and spec.destination.allow_cross_cell_move)

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return 1 in the cell, -1 elsewhere."""
        assert spec.destination is not None
        return np.where(hosts.in_cell(spec.destination.cell or ""), 1.0, -1.0)
