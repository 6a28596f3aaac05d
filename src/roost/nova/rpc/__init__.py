"""The message queue of Nova: RabbitMQ, with the envelope of oslo.messaging.

It serves remote procedure calls, and does not know their methods.

``broker_options``: options of nova.conf for brokers, queues and heartbeats.
``broker_link``: one connection, for one thread, to one of several brokers.
``link_thread``: a thread for one connection, opened again after each loss.
``broker_queues``: the exchange and the queues of a server, and their declaration.
``envelope``: messages as JSON in JSON: calls, replies, failures, and "still working".
``rpc_failure``: failures, rebuilt as exceptions by their callers.
``rpc_call``: one call, its context, and its only answer.
``call_intake``: from a message to a handler: duplicates, versions, and methods.
``open_calls``: the calls in progress, and the limit of their number.
``call_receiver``: the receiving thread.
``unconfirmed_messages``: published messages, until the broker confirms them.
``reply_sender``: the sending thread: replies until the broker confirms them.
``rpc_monitor``: state and counts of a server.
``rpc_server``: the server: its threads, its start and its stop.
"""
