"""Metrics and snapshots of the whole fleet and database, and the checks of a process.

``surveyor``: surveys in a thread beside the one that decides.
``samples``: the metrics of a survey.
``host_zones``: the zones of hosts.
``checks``: health, readiness, and their paths.
"""
