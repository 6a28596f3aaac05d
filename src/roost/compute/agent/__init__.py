"""The host agent. Read ``state_machine`` first.

``state_machine``: the agent: events in, tasks out.
``tasks``: the tasks of an agent.
``queues``: open orders, and the lane of each instance.
``guest_scans``: schedule of guest scans.
``runtime``: threads, time and polls.
``worker_pool``: threads for calls that may hang.
``execute_order``: execution and undoing of orders with the driver.
``agent_journal``: durable orders, resources and nodes.
``journal_port``: the journal's interface for the state machine.
``server_port``: the interface of the server.
``identity``: host, process and driver of an agent.
``saved_images``: deletion of unused saved images.
"""
