"""Settings of the service nova-scheduler."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.settings.number_bounds import require_bounds

_BOUNDS_S = {"poll_s": (0.1, 60.0), "read_timeout_s": (0.1, 600.0)}


class Nova(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[nova]``."""

    scheduler: Annotated[bool, Meta(description="Whether to serve the queue of nova-scheduler; needs a nova.conf.")] = (
        False
    )
    shadow: Annotated[
        bool, Meta(description="Whether to only compare Roost's choices with those of nova-scheduler.")
    ] = False
    calls_max: Annotated[int, Meta(description="Upper bound of calls in progress; further ones wait in the queue.")] = (
        64
    )
    poll_s: Annotated[float, Meta(description="Seconds between two readings of Nova's databases.")] = 1.0
    read_timeout_s: Annotated[float, Meta(description="Seconds for a database of Nova to connect or to answer.")] = 10.0
    shows_decision: Annotated[
        bool, Meta(description='Whether the fault of a Nova server ends with the decision: "(roost why ID)".')
    ] = False
    discovers_hosts: Annotated[
        bool, Meta(description="Whether to map new compute nodes to their cells, as discover_hosts does.")
    ] = False
    has_service_record: Annotated[
        bool, Meta(description="Whether to appear in the list of Nova's services as nova-scheduler.")
    ] = False

    def __post_init__(self) -> None:
        if not 1 <= self.calls_max <= 10_000:
            raise ValueError(f"calls_max must be 1..10000, got {self.calls_max}")
        require_bounds(self, _BOUNDS_S)
