"""io_ops: I/O operations in flight."""

from typing import Annotated, ClassVar

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class IoOpsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``io_ops``."""

    io_ops_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of I/O operations in flight; negative prefers idle hosts.")
    ] = -1.0


class IoOps:
    """Weigh hosts by I/O operations in flight; the negative default multiplier prefers idle hosts.

    Source:
        nova/scheduler/weights/io_ops.py.
    """

    name: ClassVar = "io_ops"
    nova_name: ClassVar = "IoOpsWeigher"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = IoOpsOptions
    aggregate_key: ClassVar = "io_ops_weight_multiplier"
    minval: ClassVar[float | None] = 0.0
    maxval: ClassVar[float | None] = None
    sign: ClassVar = 1.0

    def __init__(self, options: IoOpsOptions) -> None:
        self._options = options

    @property
    def multiplier(self) -> float:
        """The multiplier of the settings."""
        return self._options.io_ops_weight_multiplier

    def concerns(self, spec: Spec) -> bool:
        """Return True: the weigher applies to every request."""
        return True

    def changes_per_instance(self, spec: Spec) -> bool:
        """Return True: the build of an instance is an operation in flight."""
        return True

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the number of operations in flight."""
        return hosts.column("num_io_ops")
