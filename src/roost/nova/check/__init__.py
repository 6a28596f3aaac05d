"""The check of a deployment before ``roost nova-scheduler`` serves it. It reads, and changes nothing.

``check_finding``: one line of the result.
``deployment_check``: all parts, in order. Read it first.
``check_differences``: options whose work Roost does not do.
``check_broker``: brokers of the message queue, the exchange and the queue.
``check_databases``: Nova's databases: connections, tables, clocks.
``check_rights``: the right to write, if the settings need it.
``check_fleet``: cells, hosts and the state of their services.
``check_placement``: compute nodes against providers, aggregates and traits.
``check_neutron``: the login at Neutron, and its segments.
``placement_picture``: what the check needs of a Placement, Roost's own or another.
"""
