"""Host selection. Read ``select`` first.

``select``: the flow of a decision, from request to commit.
``remote_select``: the same, with claims at a remote Placement.
``remote_ledger``: these claims, and those to take back.
``decision_counts``: counts of decisions, for metrics and the history of the fleet.
``registry``: available and enabled filters and weighers.
``unread_metadata``: metadata of aggregates that no enabled rule reads.
``query``: the query to Placement, and pre-filters.
``shape``: compiled pipelines: verdicts, ranking and evidence.
``pipeline``: picks, claims, alternates and commit items.
``framework``: plug-in contract, host views and sandbox.
``filters``: one file per filter.
``weighers``: one file per weigher.
``rule_support``: shared parts of filters and weighers.
``numa``: NUMA cells of instances.
``explain``: explanations, capacity and replays.
``plans``: moves of instances to make room for a request.
``comparison``: recorded requests under several sets of settings.
"""
