"""Agents that poll this process: their registry, and what wakes them."""
