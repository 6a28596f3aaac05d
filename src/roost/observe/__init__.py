"""Observability: log, metrics, events and notifications of a running server.

``log``: the log: one line per event.
``log_events``: all events of the log, with their levels.
``log_lines``: the text and JSON formats of a line.
``metrics``: all metrics, each declared once.
``notify``: notifications of decisions.
``event_buffer``: buffer of recent events, and its readers.
``webhook``: delivery of events to a URL.
"""
