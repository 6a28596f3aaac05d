"""Instances on NUMA cells: the requested topology, and the hosts that fit it.

``constraints``: requested NUMA cells, from flavor and image.
``host_kinds``: hosts grouped by the cells that fit.
``bounds``: shortfalls of a host in words.
"""
