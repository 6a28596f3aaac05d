"""The service nova-scheduler for an existing Nova: it serves Nova's message queue, and reads Nova's databases.

``nova_service``: the whole service, and the thread that reads the databases.
``scheduler_service``: the calls of conductors: requests become decisions.
``request_of_call``: the request in a call.
``shadow``: compares the choices of nova-scheduler with Roost's.
``nova_picture``: the present picture of a Nova.
``fleet_sync``: writes the picture to the columns.
``instance_sync``: the same for instances, if a remote Placement has their allocations.
``service_login``: how Nova reaches Placement and Neutron.
``nova_chores``: what the service writes to Nova's databases, if the settings allow it.
``rpc``: the message queue: connection, envelope, calls and their replies.
``messages``: Nova's objects in messages: requests, selections, failures.
``notifications``: notifications about decisions on Nova's message bus.
``neutron``: the segments of requested networks, and remote-managed ports.
``check``: the check of a deployment before the service starts.
``database``: Nova's databases: cells, services, compute nodes, aggregates, instances.

No package of OpenStack is required: messages are JSON, and the databases are read with SQL.
"""
