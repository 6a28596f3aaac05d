"""The other processes of a database, with other versions.

``live_processes``: the age of live processes, and the oldest of their programs.
``heartbeat``: the regular record that a process lives.
``newer_peer``: changes of newer programs in the feed.
``upgrade_rules``: upgrades beside processes.
"""
