"""The store for several processes: one PostgreSQL database. Read ``store`` first.

``store``: the store.
``rows``: statements that write a batch.
``work``: queries and deletion of work.
``history``: snapshots, and earlier states.
``link``: a connection that reconnects after a loss.
``connection``: a connection with a deadline for each statement.
``arrays``: columns of values as binary arrays.
``database``: PostgreSQL as a kind of database.
``prepare``: checks and creates the schema.
``backup``: backup and restore.
``upgrade``: migrations of a database.
"""
