"""The embedded store: one SQLite file and one serving process. Read ``store`` first.

``store``: the store.
``rows``: statements that write a batch.
``work``: queries and deletion of work.
``history``: snapshots, and earlier states.
``follower``: a read-only store that follows the file.
``database``: SQLite as a kind of database.
``file``: lock, creation, opening and errors.
``backup``: backup and restore.
``upgrade``: migrations of a file.
"""
