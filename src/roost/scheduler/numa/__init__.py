"""Instances on NUMA cells: the requested topology, and the hosts that fit it."""
