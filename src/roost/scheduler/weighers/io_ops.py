"""io_ops: I/O operations in flight."""

from typing import Annotated

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class IoOpsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``io_ops``."""

    io_ops_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of I/O operations in flight; negative prefers idle hosts.")
    ] = -1.0


class IoOps(BaseWeigher[IoOpsOptions]):
    """Weigh hosts by I/O operations in flight; the negative default multiplier prefers idle hosts.

    Source:
        nova/scheduler/weights/io_ops.py.
    """

    nova_name = "IoOpsWeigher"
    options = IoOpsOptions
    multiplier_option = "io_ops_weight_multiplier"
    minval = 0.0

    def changes_per_instance(self, spec: Spec) -> bool:
        """Return True: the build of an instance is an operation in flight."""
        return True

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the number of operations in flight."""
        return hosts.column("num_io_ops")
