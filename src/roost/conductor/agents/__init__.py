"""The server's side of the protocol with agents. Read ``agent_protocol`` first.

``agent_protocol``: register, poll, answer, beat and leave.
``foreign_guests``: guests of instances on other hosts, and the operation ``clean``.
``order_messages``: stored orders as messages to agents.
``power_sync``: operations for instances whose reported state differs.
"""
