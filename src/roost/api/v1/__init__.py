"""Roost's own API, ``/v1``: decisions, instances and what fits."""
