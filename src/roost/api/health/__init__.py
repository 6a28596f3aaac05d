"""Health of a process, for monitoring.

``probes``: ``/healthz``, ``/readyz`` and ``/metrics``.
``readiness``: whether the process can serve requests now.
"""
