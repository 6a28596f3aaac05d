"""Observability: log, metrics, events and notifications of a running server."""
