"""What Nova has in ``nova.scheduler.client.report``: the report client, whose calls begin with a context."""

from collections.abc import Callable
from typing import Any

from roost.compute.report.report_client import ReportClient


class SchedulerReportClient:
    """Every call of a ``ReportClient``, with the context that Nova's callers pass first. The context has no effect.

    Args:
        client: of a Placement; ``roost.client.report_http`` and ``roost.direct.direct_report`` make one.
    """

    def __init__(self, client: ReportClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._client, name)

        def with_context(_context: object = None, /, *arguments: Any, **named: Any) -> Any:
            named.pop("context", None)
            return call(*arguments, **named)

        return with_context
