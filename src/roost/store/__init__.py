"""Stores: SQLite in one file, PostgreSQL for several processes, memory for tests and simulation.

``backends.open_store`` chooses one by its URL. All three give the verdicts of ``commit_rules.judge``. The memory store
calls it. The others use equivalent guarded statements; if one of these does not pass, they call it on the rows that a
batch touches.
"""
