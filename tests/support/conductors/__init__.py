"""Conductors with agents, and clusters in trouble."""
