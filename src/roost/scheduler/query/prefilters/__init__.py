"""Pre-filters: one file per pre-filter. ``PREFILTERS`` has them in order of execution."""

from collections.abc import Mapping
from types import MappingProxyType

from roost.scheduler.query.prefilter import Prefilter
from roost.scheduler.query.prefilters.accelerators_filter import accelerators_filter
from roost.scheduler.query.prefilters.compute_status_filter import compute_status_filter
from roost.scheduler.query.prefilters.ephemeral_encryption_filter import ephemeral_encryption_filter
from roost.scheduler.query.prefilters.isolate_aggregates import isolate_aggregates
from roost.scheduler.query.prefilters.map_az_to_placement_aggregate import map_az_to_placement_aggregate
from roost.scheduler.query.prefilters.owner_nova_filter import owner_nova_filter
from roost.scheduler.query.prefilters.packed_virtqueue_filter import packed_virtqueue_filter
from roost.scheduler.query.prefilters.remote_managed_ports_filter import remote_managed_ports_filter
from roost.scheduler.query.prefilters.require_image_type_support import require_image_type_support
from roost.scheduler.query.prefilters.require_tenant_aggregate import require_tenant_aggregate
from roost.scheduler.query.prefilters.routed_networks_filter import routed_networks_filter
from roost.scheduler.query.prefilters.tpm_secret_security_filter import tpm_secret_security_filter
from roost.scheduler.query.prefilters.transform_image_metadata import transform_image_metadata
from roost.scheduler.query.prefilters.virtio_sound_filter import virtio_sound_filter

# Nova's order: the first refusal gives the reason.
PREFILTERS: Mapping[str, Prefilter] = MappingProxyType(
    {
        prefilter.__name__: prefilter
        for prefilter in (
            require_tenant_aggregate,
            map_az_to_placement_aggregate,
            require_image_type_support,
            compute_status_filter,
            isolate_aggregates,
            transform_image_metadata,
            accelerators_filter,
            packed_virtqueue_filter,
            routed_networks_filter,
            remote_managed_ports_filter,
            ephemeral_encryption_filter,
            virtio_sound_filter,
            tpm_secret_security_filter,
            owner_nova_filter,
        )
    }
)
