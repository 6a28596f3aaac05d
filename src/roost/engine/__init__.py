"""Arithmetic over columns: pure, deterministic, and the only owner of writable arrays."""
