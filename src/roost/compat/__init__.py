"""For existing deployments: Nova's classes, over lists of host states, thin over the same rules.

The modules mirror Nova's: ``nova.scheduler.filters`` is ``roost.compat.scheduler.filters``. What is here and
what follows is listed in ``docs/compat.md``. Of Placement there is its configuration (``placement_conf``, ``ini``) and
the way out of it (``upstream``).
"""
