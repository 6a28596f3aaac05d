"""HTTP clients.

``wire``: requests on a persistent connection.
``service_http``: a service of OpenStack: tokens and retries.
``placement_http``: a Placement API, with retries.
``keystone_login``: tokens of Keystone, and the endpoint in its catalog.
``remote_claims``: candidates and claims of a remote Placement.
``host_mirror``: mirrors a remote Placement's providers in the columns.
``report_http``: a report client's connection to a Placement.
``agent_server``: the agent's client of its server.
``agent_token``: the token of an agent, which follows its file.
``server_list``: the servers of an agent, and the one in use.
``event_stream``: follows the events of a server.
``outage_text``: describes why a server gave no answer.
"""
