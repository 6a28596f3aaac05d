"""The fleet: hosts, aggregates, server groups and documents. Read ``fleet_service`` first.

``fleet_service``: creates hosts, aggregates and groups.
``host_writes``: writes that change the facts of hosts.
``host_reports``: writes of agents' reports on their nodes.
``aggregate_writes``: writes of aggregates and their members.
``group_writes``: writes that create and delete server groups.
``stored_documents``: stored flavors and images.
``lesson_documents``: documents of learning weighers.
``requested_shapes``: the shapes of stored requests.
``name_rules``: checks of names and uuids.
"""
