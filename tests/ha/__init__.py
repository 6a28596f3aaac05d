"""Faults of a replicated database under Roost, with clients that claim and release.

``peers``: the programs of the clusters, and their installation.
``cluster``: nodes and faults, as the measurements see them.
``node_processes``: starts, freezes and kills all processes of a node.
``reaper``: the init process of a node.
``packet_filter``: cuts a node off from the others.
``patroni``: PostgreSQL under Patroni, with etcd.
``galera_nodes``: MariaDB with Galera.
``client``: one client, with its measurements.
``probe``: how long a plain client of the database cannot write, beside them.
``plain_clients``: its connections.
``load``: eight clients at once.
``record``: acknowledged writes, and their comparison with the tables.
``columns``: the tables, and their comparison with each process.
``ha_run``: one fault after the other, with a comparison after each.
``report``: the results as one table.
"""
