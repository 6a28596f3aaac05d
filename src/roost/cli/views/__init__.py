"""Lists and sections of hosts, instances, decisions, operations and findings.

``database_view``: the schema and the processes of a database.
``decision_view``: decisions.
``deployment_view``: findings of ``roost nova-scheduler --check``.
``findings_view``: findings of ``roost audit`` and ``roost db check``.
``host_sections``: hosts.
``plan_view``: plans of moves.
``ratio_view``: new allocation ratios of hosts.
``instance_view``: instances, their allocations and their story.
``status_view``: the overview of a fleet.
``operation_view``: operations, their instances, and the moves of a drain or an evacuation.
"""
