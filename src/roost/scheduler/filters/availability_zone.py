"""availability_zone: hosts in the requested zones."""

from collections.abc import Hashable
from typing import Annotated

import msgspec

from roost.engine.columns.types import Mask
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import match_aggregates
from roost.scheduler.rule_support.scopes import ZONE, split_names


class AvailabilityZoneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``availability_zone``."""

    default_availability_zone: Annotated[
        str, msgspec.Meta(description="Zone of hosts without an availability zone in their aggregates.")
    ] = "nova"


class AvailabilityZone(BaseFilter[AvailabilityZoneOptions]):
    """Keep hosts in one of the requested zones. Hosts without a zone belong to the default zone.

    A request may list several zones, separated by commas. Usually the query to Placement already names the
    aggregates of the zones, so this filter rejects no further host. Nova removed it in 28.0.0.

    Source:
        nova/scheduler/filters/availability_zone_filter.py of 27.0.0.
    """

    nova_name = "AvailabilityZoneFilter"
    section = "DEFAULT"
    options = AvailabilityZoneOptions
    run_filter_once_per_request = True

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request names a zone."""
        return bool(split_names(spec.request.availability_zone or ""))

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: the zones."""
        return spec.request.availability_zone

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts in one of the zones."""
        zones = split_names(spec.request.availability_zone or "")
        has_zone, is_in_zone = match_aggregates(hosts, ZONE, zones.__contains__)
        return is_in_zone | ~has_zone if self._options.default_availability_zone in zones else is_in_zone

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return f"are not in availability zone {' or '.join(split_names(spec.request.availability_zone or ''))}"
