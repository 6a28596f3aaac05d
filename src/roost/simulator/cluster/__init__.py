"""A simulated deployment in one thread, determined by a seed. Read ``simulation`` first.

``simulation``: one run: a time with faults, then a time without.
``world``: servers, hosts and groups, and the operators.
``processes``: servers with their conductors.
``machines``: hosts with their agents.
``network``: messages that are delayed, lost, duplicated or reordered.
``agent_routes``: requests of agents to a server.
``user_requests``: requests of users, by kind of operation.
``environment``: the event queue, faults, and stored data.
``invariants``: checked after each event.
``quiescence``: checked at rest, after the last fault.
``excuses``: permitted deviations at rest.
``audit_rows``: ``roost audit`` of the simulated database.
``seed_runs``: many seeds in worker processes, and their totals.
``unreached_transitions``: transitions of operations that no seed takes.
``seed_report``: the totals and failures as text.
"""
