"""Free capacity: providers, inventories, traits, aggregates and claims. Read ``current`` first.

``current``: the columns in memory, and the store behind them.
``placement_service``: creates providers, and stages claims and releases.
``deciding_thread``: runs tasks on the columns, and commits in groups.
``job``: a task in progress.
``write_plan``: plans and acts that tasks return.
``group_limit``: the size of group commits, adapted to lock waits.
``group_commit``: which waiting tasks form a group.
``task_queue``: the queue of the deciding thread.
``last_success``: the last successful write, for readiness.
``database_silence``: outages of the database.
``writes``: the writes of each act of the Placement API.
``usages``: usages of providers and projects.
``unknown_names``: checks of the names in candidate queries.
``decision_past``: the columns before a stored decision.
``past_base``: columns of a recent moment, from which newer past columns are rebuilt.
``prune_evidence``: deletes old evidence, and starts snapshots.
"""
