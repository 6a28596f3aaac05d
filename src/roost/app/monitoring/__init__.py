"""Metrics and snapshots of the whole fleet and database, and the checks of a process.

``surveyor``: surveys in a thread beside the one that decides.
``history_writer``: writes the history of the fleet.
``samples``: the metrics of a survey.
``host_zones``: the zones of hosts.
``fleet_follower``: snapshots of the fleet and their differences, for clients.
``open_drains``: the drains under way.
``checks``: health, readiness, and their paths.
"""
