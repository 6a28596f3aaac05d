"""Ranking: scores, top-k selection with an optimality bound, incremental updates. Read ``ranks`` first.

``ranks``: scales, sums, and the choice of the best.
``score_cache``: scores of all hosts, updated host by host.
``top_pool``: the best few hundred hosts, updated incrementally.
``pool_bound``: the bound on all other hosts.
``rendezvous``: the division of hosts among processes.
"""
