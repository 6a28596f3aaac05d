"""Rules of every store: tables, rows, verdicts and pruning. Read ``commit_rules`` first.

``commit_rules``: the verdict on one item.
``write_rule``: the rule of a kind of write.
``writes``: the rules of all kinds of writes.
``footprint``: the rows that a verdict needs.
``row_cache``: rows in memory, with undo.
``batch``: the net effect of claims and releases.
``generations``: generations of providers.
``schema``: tables, columns and the schema version.
``codec``: conversion between structs and rows.
``feed_kinds``: the first program that reads each kind of write.
``history_table``: the history of the fleet; its rows in a database in memory.
``decision_filter``: the filter of stored decisions.
``feed``: the known changes of a process, and its own.
``vector``: the known changes of a process, by writer.
``closing_parts``: parts of a database whose source closes after the last one.
``prune``: the choice of rows to delete.
"""
