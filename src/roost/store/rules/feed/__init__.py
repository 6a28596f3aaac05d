"""The known changes of a process, and its own: equal on each shared database.

``known_changes``: the vector of a process, and its advance.
``own_writer``: the writer of a process.
``visible_changes``: the visible changes of a decision.
``stale_state``: errors of a process whose state is outdated.
"""
