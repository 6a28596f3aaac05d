"""The forms of ``roost replay``.

``compare_policies``: a trace under several policies or seeds.
``replay_history``: the recorded requests of a database.
"""
