"""Agents, drivers and report clients."""
