"""The parts of a step, common to all kinds of operations. Read ``step`` first.

``step``: the view of an operation, and its next commit.
``step_table``: the steps of a kind, with a handler per event.
``events``: the possible observations of a step.
``watches``: functions that find the event of a step.
``lock``: new operations, and their locks on instances.
``liveness``: the writes after an agent goes or returns.
``reconcile``: the fate of guests on a returning host.
``retries``: limits of build attempts.
``row_changes``: new versions of rows.
``stored_request``: the stored request, flavor and image of an instance.
``story``: story lines.
``step_counts``: the metrics of committed steps.
``faults``: texts of errors, and outcomes of failed builds.
"""
