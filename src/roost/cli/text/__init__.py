"""Text output.

``plain_text``: escapes, times, and lines that are safe on a terminal.
``moments``: dates and durations in options.
``tables``: aligned tables and lists of fields.
``progress``: progress bars on standard error.
``audit_text``: findings of ``roost audit``.
``comparison_text``: the comparison of ``roost replay``.
``decide_text``: the answer of ``roost decide``.
``decision_text``: lists of decisions.
``instance_text``: instances and operations.
``replay_text``: the report of ``roost replay``.
``why_text``: the explanation of ``roost why``.
"""
