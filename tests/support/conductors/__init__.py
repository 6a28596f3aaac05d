"""Conductors with agents, and clusters under faults."""
