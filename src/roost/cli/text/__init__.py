"""Text output.

``plain_text``: escapes, times, and lines that are safe on a terminal.
``moments``: dates and durations in options.
``terminal``: the width and the colours of the terminal.
``tables``: tables that fit the terminal.
``progress``: progress bars on standard error.
``comparison_text``: the comparison of ``roost replay``.
``history_text``: the comparison of ``roost replay --from``.
``decide_text``: the answer of ``roost decide``.
``compact_text``: the report of ``roost lab compact``.
``lab_text``: the table of ``roost lab fgd``.
``replay_text``: the report of ``roost replay``.
``reason_words``: reasons of refusals in the words of operators.
``why_text``: the explanation of ``roost why``.
``help_examples``: the examples in help texts.
"""
