"""Counterpart of ``nova.virt``, for third-party filters and drivers.

``hardware``: NUMA topologies, and their fit on a host.
"""
