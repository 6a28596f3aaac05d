"""``roost instance``: the commands for instances.

``instance``: create, list, show, delete, start and stop.
``instance_changes``: rebuild, shelve, offload, unshelve, reboot and reset.
``instance_live``: live migration and evacuation.
``instance_moves``: resize and migration, and their confirmation.
``request_fields``: requests from files and options.
``wait``: requests of actions, and waiting for operations.
"""
