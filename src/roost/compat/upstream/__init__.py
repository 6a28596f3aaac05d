"""Import of all data of an upstream Placement, with a comparison afterwards. Read ``import_run`` first.

``import_run``: plan, commit and comparison.
``read_source``: chooses the reader for a URL.
``read_sql``: reads a Placement's database.
``sql_drivers``: drivers and connections for databases of OpenStack.
``read_http``: reads a Placement's API.
``placement_world``: the data of a Placement, from either side.
``merge``: the changes to make, and the conflicts.
``import_memory``: digests of earlier imports.
``import_writes``: the writes of an import.
``verify``: the comparison.
"""
