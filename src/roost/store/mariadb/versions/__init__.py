"""The version of a MariaDB database, and the versions of its processes.

``prepare``: checks, creates and upgrades the schema.
``heartbeats``: heartbeats, and the list of live processes.
"""
