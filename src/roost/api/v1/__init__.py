"""Roost's own API, ``/v1``. Read ``application`` first.

``application``: authentication, route, authorization, handler.
``routes``: the routes of every path.
``fleet_routes``: routes of hosts, aggregates, stored names and groups.
``instance_routes``: routes of instances, operations and migrations.
``route``: one route.
``call``: the input of a handler, and JSON responses.
``handlers``: one file per resource.
``schemas``: bodies, queries and answers.
``wire``: decoding, pages and error format.
``agents``: polling agents and their wake-ups.
``policies``: one policy per operation.
``permission``: authorization by policy.
``batch_parts``: several requests in one.
``idempotency``: replays of requests with one key.
``accepted_response``: the 202 response for an operation.
``long_poll``: responses that wait for an event.
``current_names``: lookup by name in the current state.
``host_uptime``: whether hosts are up.
``documents``: the OpenAPI document, and its page for browsers.
``product_port``: the interface of the product.
``fleet``: snapshots of the fleet.
"""
