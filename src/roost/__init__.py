"""Roost decides where every workload runs, and shows why."""

__version__ = "0.1.0"
