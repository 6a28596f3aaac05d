"""The store for several processes: one MariaDB database, or a Galera cluster. Read ``store`` first.

``store``: the store.
``rows``: statements for a batch.
``stock_update``: the statement of a batch that changes inventories.
``script``: SQL text with literals, and scripts for one round trip.
``work``: queries and deletion of work.
``writers``: registration and closing of writers, and the vector of all changes.
``feed_reader``: the new changes of other processes.
``history``: snapshots, and earlier states.
``bulk_reader``: reads of many rows as of one moment.
``leases``: locks beyond the end of a transaction.
``link``: a connection, and its replacement after a loss.
``connection``: a connection with a deadline for each answer, and the translation of its errors.
``address``: the URL of a database.
``database``: MariaDB as a kind of database.
``versions``: the version of a database, and of its processes.
``backup``: backup and restore.
"""
