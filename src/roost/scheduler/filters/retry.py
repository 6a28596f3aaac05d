"""retry: hosts without an earlier failed build of the instances."""

from collections.abc import Hashable

import numpy as np

from roost.engine.columns.types import Mask
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec


class Retry(BaseFilter[NoOptions]):
    """Keep hosts without an earlier failed build of the same instances.

    Alternates replace it today; Nova removed it in 22.0.0.

    Source:
        nova/scheduler/filters/retry_filter.py of 21.0.0.
    """

    nova_name = "RetryFilter"

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request names hosts from earlier attempts."""
        return bool(_previous_hosts(spec))

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: the hosts of earlier attempts."""
        return _previous_hosts(spec)

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts whose pair of service and node is not among the earlier attempts."""
        previous = _previous_hosts(spec)
        pairs = zip(hosts.names(), hosts.nodes(), strict=True)
        return np.array([pair not in previous for pair in pairs], dtype=np.bool_)

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return "were tried before"


def _previous_hosts(spec: Spec) -> frozenset[tuple[str, str]]:
    retry = spec.request.retry
    return frozenset() if retry is None else frozenset(retry.hosts)
