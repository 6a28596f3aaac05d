"""The store for several processes: one PostgreSQL database. Read ``store`` first.

``store``: the store.
``rows``: statements that write a batch.
``work``: queries and deletion of work.
``writers``: registration and closing of writers, and the vector of all changes.
``feed_reader``: the new changes of other processes.
``history``: snapshots, and earlier states.
``older_history``: earlier states, for decisions of earlier versions.
``bulk_reader``: reads of many rows as of one moment.
``link``: a connection that reconnects after a loss.
``connection``: a connection with a deadline for each statement.
``arrays``: columns of values as binary arrays.
``database``: PostgreSQL as a kind of database.
``backup``: backup and restore.
``versions``: the schema, the live processes, and upgrades.
"""
