"""Carry out operations on instances: builds, moves, deletions and power states."""
