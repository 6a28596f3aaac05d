"""Observability: log, metrics, events and notifications of a running server.

``log``: the log: one line per event.
``log_events``: all events of the log, with their levels.
``log_lines``: the text and JSON formats of a line.
``log_writer``: the thread that writes lines.
``families``: declarations of metric families; the source of the reference in ``docs/monitoring.md``.
``metrics``: metrics of requests, events, the deciding thread and the process.
``work_metrics``: metrics of decisions, operations, agents and Nova's message queue.
``fleet_metrics``: metrics of the fleet and the database.
``survey_board``: the results of the last surveys.
``metrics_folder``: the folder in which processes combine their metrics.
``exposition``: the text of all metrics.
``notify``: notifications of decisions.
``event_buffer``: buffer of recent events, and its readers.
``traces``: OpenTelemetry traces of requests.
``webhook``: delivery of events to a URL.
"""
