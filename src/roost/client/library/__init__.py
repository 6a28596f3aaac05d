"""The client library of ``/v1``, synchronous and asynchronous. Read ``async_client`` first.

``async_client``: the asynchronous client.
``sync_client``: the same methods without ``await``; a test compares both files.
``calls``: the requests, and the types of their answers.
``exchange``: calls, answers and steps as values.
``attempts``: retries, and waits for operations.
``page_cursor``: lists of several pages.
``api_error``: errors.
``session``: server and limits of a client.
``endpoint``: the bytes of a request to a server.
``http_messages``: requests as bytes, and a parser of answers.
``event_lines``: a parser of server-sent events.
``socket_driver``, ``socket_pool``: steps on blocking sockets.
``stream_driver``, ``stream_pool``: steps on an event loop.
"""
