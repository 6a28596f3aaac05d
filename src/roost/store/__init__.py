"""Stores: SQLite in one file, PostgreSQL or MariaDB for several processes, memory for tests and simulation.

Read ``backends`` first.

All stores return the verdicts of ``commit_rules.judge``. The memory store calls ``judge`` for every item. The databases
write claims, releases and documents with guarded statements of the same effect. After a failed guard, and for all other
writes, they call ``judge`` on the rows of the batch.

``backends``: the registry of databases by URL.
``database``: the interface of a kind of database.
``servers``: the common part of the stores on database servers.
``sqlite``: the store of one serving process.
``postgresql``: the store of several processes.
``mariadb``: the same on MariaDB or Galera.
``memory_store``: rows in memory, for tests and simulation.
``dry_store``: accepts every claim and stores nothing.
``reader``: a read-only view of another store.
``rules``: commit rules and tables of every store.
``work_queries``: queries of operations, orders and other work.
``old_changes``: deletion of old records of changes.
``dump``: a whole database as writes.
``column_file``: a copy of a whole database in a file, from which a large fleet opens faster.
``snapshots``: the schedule of snapshots, and the process for writing them and column files.
``snapshot_program``: the program that writes a snapshot or a column file.
``backup``: backup and restore.
``backup_file``: the file format of a backup.
``audit``: checks of a database by plain SQL.
``peers``: the other processes of a database, and their versions.
``upkeep``: counts for metrics, and the record of audits and backups.
``orphans``: allocations of consumers that do not exist or are on other hosts.
``migrate``: runs migrations on a connection.
``migrations``: the migrations.
"""
