"""Operations on instances and hosts: builds, moves, deletions, power states. Read ``loop`` first.

``loop``: takes due operations and commits their next steps.
``views``: the database rows that a step reads.
``jobs``: periodic jobs, each run by the holder of its lease.
``story_feed``: the feeds of new story lines and changes.
``story_log``: logs the new lines of stories.
``intake``: accepts requests and commits their operations.
``operation``: the parts of a step, common to all kinds of operations.
``steps``: one table of steps per kind of operation.
``builds``: claims, alternates and failures of builds.
``moves``: targets, orders and endings of moves.
``agents``: the server's side of the agent protocol.
"""
