"""Placement of instance cells on the NUMA cells of a host. Read ``cell_choice`` first.

``cell_choice``: host cells for an instance, near its devices.
``fit``: assignment of instance cells to host cells.
``cell``: one instance cell on one host cell.
``cpu_pinning``: dedicated processors for virtual CPUs.
``cell_usage``: use of host cells with another instance.
``cell_limits``: the NUMA limits of a decision.
``network_affinity``: nearness of cells to network cards.
"""
