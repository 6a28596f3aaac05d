"""Stores: SQLite in one file, PostgreSQL for several processes, memory for tests and simulation.

Read ``backends`` first.

All stores give the verdicts of ``commit_rules.judge``. The memory store calls it. The others use equivalent guarded
statements; if one of these does not pass, they call it on the rows of the batch.

``backends``: the registry of databases by URL.
``database``: the interface of a kind of database.
``sqlite``: the store of one serving process.
``postgresql``: the store of several processes.
``memory_store``: rows in memory, for tests and simulation.
``dry_store``: accepts every claim and stores nothing.
``reader``: a read-only view of another store.
``rules``: commit rules and tables of every store.
``work_queries``: queries of operations, orders and other work.
``dump``: a whole database as writes.
``snapshots``: the schedule of snapshots, and their process.
``snapshot_program``: the program that writes a snapshot.
``backup``: backup and restore.
``backup_file``: the file format of a backup.
``audit``: checks of a database by plain SQL.
``orphans``: allocations that nothing will release.
``migrate``: migrations on a connection.
``migrations``: the migrations.
"""
