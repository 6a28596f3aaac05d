"""The service nova-scheduler for an existing Nova: it serves Nova's message queue, and reads Nova's databases.

``rpc``: the message queue: connection, envelope, calls and their replies
``messages``: Nova's objects in messages: requests, selections, failures
``database``: Nova's databases: cells, services, compute nodes, aggregates, instances

No package of OpenStack is required: messages are JSON, and the databases are read with SQL.
"""
