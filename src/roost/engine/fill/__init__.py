"""Fills an empty state with a whole database, table by table. ``columns.apply`` is its slow twin, and applies changes.

``table_columns``: rows of a table as columns.
``loaded_database``: the content of a database.
``state_fill``: adds them to a state.
``row_writes``: columns as one write for each row.
``claim_fill``: consumers with their allocations and instances.
``host_totals``: the totals of all hosts at once.
``uuid_text``: uuids as text.
"""
