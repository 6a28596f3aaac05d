"""Counterpart of ``nova.scheduler.client.report``: the report client; calls take a context first."""

from collections.abc import Callable
from typing import Any

from roost.compute.report.report_client import ReportClient


class SchedulerReportClient:
    """A ``ReportClient`` with the context of Nova's callers as an additional first argument, without effect.

    Args:
        client: of a Placement, as from ``roost.client.report_http`` or ``roost.direct.direct_report``.
    """

    def __init__(self, client: ReportClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._client, name)

        def with_context(_context: object = None, /, *arguments: Any, **named: Any) -> Any:
            named.pop("context", None)
            return call(*arguments, **named)

        return with_context
