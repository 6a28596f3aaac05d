"""Observability: log, metrics, events and notifications of a running server.

``log``: the log: one line of JSON per event.
``metrics``: all metrics, each declared once.
``notify``: notifications of decisions.
``event_buffer``: buffer of recent events, and its readers.
``webhook``: delivery of events to a URL.
"""
