"""Readers of the columns for monitoring, in a thread beside the deciding one.

``fleet_sums``: sums over the fleet by resource class and zone.
``fleet_snapshot``: shares, instances and states of all hosts.
``fleet_layout``: the steady parts of a snapshot: order, names, places, racks and capacities.
``reported_facts``: the facts of hosts as arrays.
``column_memory``: copies of columns.
``host_shares``: the used share of each host, for columns of the own thread.
``history_rollup``: the history of the sums, with fewer and longer periods.
"""
