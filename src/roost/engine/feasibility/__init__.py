"""Which hosts can hold a request, with a reason for each refusal. Read ``feasibility`` first.

``feasibility``: checks, judged in passes or host by host.
``query_checks``: builds the checks of a query.
``claim``: checks of explicit claims.
``first_fit``: the first candidate of a host without a search.
``headroom``: how many requests each host can hold.
"""
