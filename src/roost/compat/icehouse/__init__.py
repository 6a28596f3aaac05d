"""The schedulers of Nova's first releases, and the service around them. Read ``driver`` first.

``driver``: the base of schedulers.
``filter_scheduler``: filters and weighs; the default.
``caching_scheduler``: the same, with cached hosts.
``chance``: picks random hosts.
``live_migration``: moves running instances.
``scheduler_manager``: the service: receives messages.
``deployment``: compute services, records, notifications and quotas.
"""
