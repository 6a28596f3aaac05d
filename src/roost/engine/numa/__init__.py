"""Placement of instance cells on the NUMA cells of a host, and the resulting use."""
