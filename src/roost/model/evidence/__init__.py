"""Decisions and their evidence, as stored and as explained.

``decision``: decisions: picks, stages and scores.
``fleet_part``: the part of the fleet of one process.
``explain``: reasons of a decision, and changes that would help.
``capacity``: capacity for more instances, and shortages.
``move_plans``: moves of instances: to make room for a request, to empty hosts, to balance hosts.
``fleet_history``: amounts and decisions over time.
``replay_result``: replays, and their differences.
``comparison``: recorded requests under several sets of settings.
``lesson``: lessons of weighers from requests.
``predicates``: predicates of refusals, such as "lack 4 VCPU or more".
``summary``: counts of recent refusals.
"""
