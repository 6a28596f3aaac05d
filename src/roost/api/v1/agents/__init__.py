"""Agents that poll this process.

``agent_registry``: polls, heartbeats, and the reader of work.
``wakeups``: wakes waiting clients after commits.
"""
