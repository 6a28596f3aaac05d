"""Settings of metrics and of the readiness of a server."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.settings.number_bounds import require_bounds

_BOUNDS = {
    "survey_interval_s": (0.0, 3600.0),
    "zones_max": (1, 1000),
    "classes_max": (1, 1000),
    "ready_busy_s": (0.1, 3600.0),
    "ready_queue_share": (0.01, 1.0),
    "ready_write_check_s": (0.0, 3600.0),
    "ready_conductor_s": (1.0, 3600.0),
}


class Monitoring(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[monitoring]``."""

    survey_interval_s: Annotated[
        float, Meta(description="Seconds between surveys of the fleet and the database for metrics; 0: no surveys.")
    ] = 15.0
    zones_max: Annotated[
        int, Meta(description="Upper bound of zones in metrics; the hosts of further zones count as zone other.")
    ] = 50
    classes_max: Annotated[
        int, Meta(description="Upper bound of resource classes in metrics: those with the most providers.")
    ] = 50
    ready_busy_s: Annotated[
        float, Meta(description="Seconds of work on one group of requests after which /readyz returns 503.")
    ] = 5.0
    ready_queue_share: Annotated[
        float, Meta(description="Filled share of the queue (placement.queue_max) at which /readyz returns 503.")
    ] = 0.8
    ready_write_check_s: Annotated[
        float,
        Meta(description="Seconds without a write after which /readyz writes a row to test the database; 0: never."),
    ] = 10.0
    ready_conductor_s: Annotated[
        float, Meta(description="Seconds without a turn of roost conductor after which its /readyz returns 503.")
    ] = 30.0

    has_traces: Annotated[
        bool, Meta(description="Whether servers send OpenTelemetry traces of requests; needs the package extra traces.")
    ] = False

    def __post_init__(self) -> None:
        require_bounds(self, _BOUNDS)
