"""Nova's databases, read with SQL: the API database and those of the cells. Read ``fleet_reader`` first.

``fleet_reader``: the changes of all cells since the last read.
``nova_fleet``: the values that it returns.
``database_options``: connections and times from nova.conf.
``database_link``: connections with time limits, and their transactions.
``cell_mappings``: cells and their databases; hosts and their cells.
``aggregate_rows``: aggregates with hosts and metadata.
``cell_reader``: the changes of one cell, and the thread that reads it.
``compute_nodes``: compute nodes and their facts.
``stored_devices``: NUMA topologies and PCI devices in compute nodes.
``service_rows``: services and whether they are alive.
``instance_places``: instances and their hosts.
``clock_skew``: differences between the clocks of databases and this machine.
``discover_hosts``: mapping of new hosts to cells; it writes.
``service_record``: the row of this scheduler in Nova's list of services; it writes.

Everything but ``discover_hosts`` and ``service_record`` needs only the privilege SELECT.
"""
