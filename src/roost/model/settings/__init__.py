"""Settings: one struct per section.

``roost_settings``: all sections together; scheduler, store and others.
``agent_settings``: section agent.
``conductor_settings``: section conductor.
``log_settings``: section log.
``monitoring_settings``: section monitoring.
``notification_settings``: section notifications.
``nova_settings``: section nova.
``number_bounds``: the check of bounds that sections share.
``placement_settings``: section placement.
``setting_rows``: settings as rows for people, without secrets.
"""
