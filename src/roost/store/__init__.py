"""Stores: SQLite in one file, PostgreSQL for several processes, memory for tests and simulation.

``opening.open_store`` picks one by its URL. All three give the verdicts of ``verdict.judge``: the memory
store by calling it, the others by guarded statements that agree with it and, when one of them does not
pass, by calling it on the rows that a batch touches.
"""
