"""Monitoring of a database beside its servers.

``row_counts``: numbers of rows and bytes.
``stored_history``: the history of the fleet.
``upkeep_rows``: the record of the last audit and backup.
"""
