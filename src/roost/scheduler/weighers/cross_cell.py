"""cross_cell: hosts in the instance's current cell."""

from typing import Annotated

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class CrossCellOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``cross_cell``."""

    cross_cell_move_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of staying in the same cell in a move; negative prefers other cells.")
    ] = 1000000.0


class CrossCell(BaseWeigher[CrossCellOptions]):
    """Prefer hosts in the instance's current cell during moves that may leave the cell.

    Source:
        nova/scheduler/weights/cross_cell.py.
    """

    nova_name = "CrossCellWeigher"
    options = CrossCellOptions
    multiplier_option = "cross_cell_move_weight_multiplier"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the destination names a cell and the move may leave it."""
        return bool(spec.destination and spec.destination.cell and spec.destination.allow_cross_cell_move)

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return 1 in the cell, -1 elsewhere."""
        assert spec.destination is not None
        return np.where(hosts.in_cell(spec.destination.cell or ""), 1.0, -1.0)
