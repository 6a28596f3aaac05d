"""Accept requests: validate them, and commit their operations. Read ``accept`` first.

``accept``: builds, deletions, moves and power changes.
``accept_changes``: rebuild, shelve, offload and unshelve.
``accept_revert``: reverts of moves.
``accept_drain``: drains of hosts: accept, rehearse, pause; drains and plans: cancel.
``accept_plan``: plans of moves: accept, rehearse.
``departures``: the move of one instance, as a part of a drain or a plan.
``movable_instances``: the movable instances of plans.
``waiting_members``: the members of a server group that have no host.
"""
