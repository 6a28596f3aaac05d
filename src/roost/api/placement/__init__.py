"""The Placement API on the thread that owns the columns. Read ``application`` first.

``application``: authentication, version, route, authorization, handler.
``routes``: methods, versions, policies and handlers of every path.
``handlers``: one file per resource.
``query_params``: amounts, traits and aggregates of query strings.
``allocation_schemas``: schemas of bodies with allocations.
``candidate_schemas``: schemas of candidate queries.
``candidate_query``: parses candidate queries.
``candidate_cache``: compiled queries, and the JSON of their responses.
``candidate_json``: candidates as JSON.
``candidate_summaries``: provider summaries as JSON.
``ownership``: write permissions of tokens with host bounds.
``name_quota``: how many names an agent's token may create.
``in_process``: the API without a server.
"""
