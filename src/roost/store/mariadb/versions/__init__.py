"""The version of a MariaDB database, and the versions of its processes.

``read_schema``: the schema, as the tables have it.
``prepare``: checks, creates and upgrades the schema.
``heartbeats``: heartbeats, and the list of live processes.
"""
