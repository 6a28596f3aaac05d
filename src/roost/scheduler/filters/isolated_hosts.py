"""isolated_hosts: isolated images run on isolated hosts only."""

from collections.abc import Hashable
from typing import Annotated

import msgspec
import numpy as np

from roost.engine.columns.types import Mask
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Reads
from roost.scheduler.framework.spec import Spec


class IsolatedHostsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``isolated_hosts``."""

    isolated_images: Annotated[
        tuple[str, ...], msgspec.Meta(description="Ids of the images that run only on isolated hosts.")
    ] = ()
    isolated_hosts: Annotated[tuple[str, ...], msgspec.Meta(description="Names of the isolated hosts.")] = ()
    restrict_isolated_hosts_to_isolated_images: Annotated[
        bool, msgspec.Meta(description="Whether isolated hosts accept only isolated images.")
    ] = True


class IsolatedHosts(BaseFilter[IsolatedHostsOptions]):
    """Keep only isolated hosts for isolated images.

    If the settings restrict isolated hosts, reject these hosts for all other images.

    Source:
        nova/scheduler/filters/isolated_hosts_filter.py.
    """

    nova_name = "IsolatedHostsFilter"
    options = IsolatedHostsOptions
    run_filter_once_per_request = True
    run_on_rebuild = True

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the image is isolated, or isolated hosts take isolated images only."""
        options = self._options
        is_restricted = options.restrict_isolated_hosts_to_isolated_images and bool(options.isolated_hosts)
        return self._is_isolated(spec) or is_restricted

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: whether the image is isolated."""
        return self._is_isolated(spec)

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep isolated hosts for an isolated image, else the hosts open to other images."""
        isolated = frozenset(self._options.isolated_hosts)
        is_isolated: Mask = np.array([name in isolated for name in hosts.names()], dtype=np.bool_)
        if self._is_isolated(spec):
            return is_isolated
        return ~is_isolated if self._options.restrict_isolated_hosts_to_isolated_images else np.ones_like(is_isolated)

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return "are not isolated, but the image is" if self._is_isolated(spec) else "are isolated, but the image is not"

    def _is_isolated(self, spec: Spec) -> bool:
        return spec.image is not None and spec.image.id in self._options.isolated_images
