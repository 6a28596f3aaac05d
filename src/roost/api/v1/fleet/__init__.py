"""Snapshots of the fleet for clients.

``fleet_file``: the columns of the fleet as a file.
``fleet_frames``: buffer of recent changes, and its readers.
``fleet_queries``: queries of the routes.
``fleet_port``: the interface of their reader.
"""
