"""availability_zone: hosts of the zones that are asked for."""

from collections.abc import Hashable
from typing import Annotated, ClassVar

import msgspec

from roost.engine.columns.types import Mask
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import match_aggregates
from roost.scheduler.rule_support.scopes import ZONE, split_names


class AvailabilityZoneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``availability_zone``."""

    default_availability_zone: Annotated[
        str, msgspec.Meta(description="The zone of hosts that are in no aggregate with an availability zone.")
    ] = "nova"


class AvailabilityZone:
    """Keep hosts whose aggregates make up one of the zones; hosts whose aggregates name none are in the default zone.

    The request may name several zones, with commas. Placement is asked for the zone's aggregates before, so this
    refuses nothing that is left; Nova removed it in 28.0.0.

    Source:
        nova/scheduler/filters/availability_zone_filter.py of 27.0.0.
    """

    name: ClassVar = "availability_zone"
    nova_name: ClassVar = "AvailabilityZoneFilter"
    section: ClassVar = "DEFAULT"
    options: ClassVar = AvailabilityZoneOptions
    run_filter_once_per_request: ClassVar = True
    run_on_rebuild: ClassVar = False

    def __init__(self, options: AvailabilityZoneOptions) -> None:
        self._options = options

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: only if the request names a zone."""
        return bool(split_names(spec.request.availability_zone or ""))

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return what of the request a verdict depends on: the zones."""
        return spec.request.availability_zone

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts of one of the zones."""
        zones = split_names(spec.request.availability_zone or "")
        has_zone, is_in_zone = match_aggregates(hosts, ZONE, zones.__contains__)
        return is_in_zone | ~has_zone if self._options.default_availability_zone in zones else is_in_zone

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts are not."""
        return f"are not in availability zone {' or '.join(split_names(spec.request.availability_zone or ''))}"
