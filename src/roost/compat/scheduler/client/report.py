"""Counterpart of ``nova.scheduler.client.report``: the report client, with a context in each call."""

from collections.abc import Callable
from typing import Any

from roost.compute.report.report_client import ReportClient


class SchedulerReportClient:
    """A ``ReportClient`` for callers from Nova: each method accepts a context as first argument, and ignores it.

    Args:
        client: client of a Placement, as from ``roost.client.report_http`` or ``roost.direct.direct_report``.
    """

    def __init__(self, client: ReportClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._client, name)

        def with_context(_context: object = None, /, *arguments: Any, **named: Any) -> Any:
            named.pop("context", None)
            return call(*arguments, **named)

        return with_context
