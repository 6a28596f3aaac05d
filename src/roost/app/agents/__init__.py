"""The agents of one or more hosts.

``agent_process``: runs them in one process.
``adopt_host``: a new journal for an agent that lost its own.
"""
