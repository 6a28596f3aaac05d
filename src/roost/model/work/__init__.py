"""Work of conductors and agents: operations, orders and guests. Read ``operation`` first.

``operation``: kinds of operations, permitted statuses, and their stored state.
``change_memory``: stored state of rebuild, shelve, unshelve, drain and apply.
``move_windows``: windows of time for the moves of a plan.
``builds``: builds: orders, attempts and outcomes.
``work_rows``: rows of the database, committed with claims.
``change_query``: a query for changes by clients.
``orders``: protocol of agents and server.
``agent_terms``: resources of a node, and terms of its inventory.
``device_spec``: selection of PCI devices for Placement.
``guest``: guests, as a driver runs them.
``guest_use``: needs of a guest, and its use of a host.
``standing``: standings of instances, for lookups by agents.
``notification``: notifications of decisions and stories.
"""
