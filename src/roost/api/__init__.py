"""The HTTP server: the Placement API and Roost's own API. Read ``placement/application`` or ``v1/application`` first.

``asgi``: an API as an ASGI application; limits, threads, metrics.
``http``: requests and responses, independent of their transport.
``loop_outcome``: results of the serving thread on the event loop.
``path_tree``: lookup of routes by path.
``json_schema``: validation of bodies and queries.
``problems``: the status code and the formats of errors.
``accept_header``: content negotiation.
``answer_options``: settings of responses.
``body_limits``: reading of bodies within limits.
``fast_reads``: reads that the event loop answers itself.
``slow_lists``: lists that the reader process answers.
``request_trace``: the trace of a request.
``reader_client``: forwards long reads to the reader process.
``log_outcome``: log lines of changes, and of refused clients.
``outages``: logs of database outages.
``health``: ``/healthz``, ``/readyz`` and ``/metrics``.
``changes``: changes by clients: kinds and notes.
``transfer``: compression and entity tags.
``access``: authentication, policies, tokens, and the rules of browsers.
``placement``: the Placement API.
``server``: connections, TLS, worker processes.
``v1``: Roost's own API.
"""
