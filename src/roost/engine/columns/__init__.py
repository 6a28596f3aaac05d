"""The state in columns: growing arrays, written by ``apply`` and ``engine.fill`` alone. Read ``state`` first.

``state``: all columns of one process.
``apply``: applies writes to a state.
``column``: a growing array with read-only views, and a set of rows.
``types``: names of the array types.
``trees``: providers and their trees.
``host_columns``: hosts, with the columns of Nova's HostState.
``inventory_columns``: inventories and free amounts by class.
``label_bits``: traits and aggregates of providers.
``name_table``: names with their numbers or rows.
``consumers``: consumers by provider and by project.
``image_counts``: instances by host and image property.
``interning``: distinct values, and one code per host.
``change_log``: changed rows, for the invalidation of caches, and arrays that follow them.
``totals``: sums by resource class.
``empty_fleet``: a fleet without consumers.
"""
