"""OpenTelemetry traces: a span for each request, in the trace of its client."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from roost import __version__
from roost.errors import BadSettings, extra_hint
from roost.model.settings.monitoring_settings import Monitoring

_SERVICE = "roost"


class Part(NamedTuple):
    """A part of the time of a request; times are of ``time.perf_counter``."""

    name: str
    start_s: float
    end_s: float


class Tracer:
    """Makes the spans of requests, and sends them in a thread of its own.

    The environment variables of OpenTelemetry choose the collector, the sampler and the limits of the queue.

    Raises:
        BadSettings: OpenTelemetry is not installed.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError:
            raise BadSettings("monitoring.has_traces", f"traces need OpenTelemetry: {extra_hint('traces')}") from None
        name = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": _SERVICE}
        resource = Resource.create({**name, "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(_SERVICE, __version__)
        self._propagator = TraceContextTextMapPropagator()

    def record(
        self,
        name: str,
        *,
        headers: Mapping[str, str],
        parts: Sequence[Part],
        start_s: float,
        attributes: dict[str, Any],
    ) -> None:
        """Record the span of a request that ends now, and a child of it for each part.

        Args:
            name: method and route.
            headers: those of the request, in lower case; ``traceparent`` names the span of the client.
            parts: parts of the time of the request.
            start_s: start of the request, of ``time.perf_counter``.
            attributes: attributes of the span, by the conventions of OpenTelemetry for HTTP servers.
        """
        from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context

        end_ns, end_s = time.time_ns(), time.perf_counter()

        def at_ns(moment_s: float) -> int:
            return end_ns - round((end_s - moment_s) * 1e9)

        parent = self._propagator.extract(headers)
        span = self._tracer.start_span(
            name, parent, kind=SpanKind.SERVER, attributes=attributes, start_time=at_ns(start_s)
        )
        if attributes["http.response.status_code"] >= 500:
            span.set_status(StatusCode.ERROR)
        context = set_span_in_context(span)
        for part in parts if span.is_recording() else ():
            child = self._tracer.start_span(part.name, context, start_time=at_ns(part.start_s))
            child.end(at_ns(part.end_s))
        span.end(end_ns)

    def stop(self) -> None:
        """Send the recorded spans, for a few seconds at most."""
        self._provider.shutdown()


class _Current:
    """The tracer of this process."""

    tracer: Tracer | None = None


def current_tracer() -> Tracer | None:
    """Return the tracer of this process; None: it sends no traces."""
    return _Current.tracer


@contextmanager
def send_traces(settings: Monitoring) -> Iterator[None]:
    """Send traces within the block, if the settings enable them.

    Raises:
        BadSettings: OpenTelemetry is not installed.
    """
    if not settings.has_traces:
        yield
        return
    _Current.tracer = tracer = Tracer()
    try:
        yield
    finally:
        _Current.tracer = None
        tracer.stop()
