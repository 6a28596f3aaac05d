"""Compatibility with existing deployments: Nova's classes over Roost's rules, configuration files, and imports.

The modules mirror Nova's: ``nova.scheduler.filters`` is ``roost.compat.scheduler.filters``. ``docs/compat.md`` lists
the supported classes. For Placement there are its configuration (``placement_conf``, ``ini``) and the import of its
data (``upstream``).
"""
