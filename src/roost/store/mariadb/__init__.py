"""The store for several processes: one MariaDB database, or a Galera cluster. Read ``store`` first.

``store``: the store.
``rows``: statements that write a batch.
``script``: SQL text with literals, and scripts for one round trip.
``work``: queries and deletion of work.
``writers``: registration and closing of writers, and the vector of all changes.
``feed_reader``: the new changes of other processes.
``history``: snapshots, and earlier states.
``bulk_reader``: reads of many rows as of one moment.
``leases``: locks that outlive a transaction.
``link``: a connection that reconnects after a loss.
``connection``: a connection with a deadline for each answer, and the translation of its errors.
``address``: the URL of a database.
``database``: MariaDB as a kind of database.
``prepare``: checks, creates and upgrades the schema.
``backup``: backup and restore.
"""
