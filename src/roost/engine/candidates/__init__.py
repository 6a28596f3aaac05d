"""Candidate search: sets of providers that can serve a query together. Read ``search`` first.

``search``: all candidates of a query, anchor by anchor.
``query``: a query in the numbers of a state.
``anchors``: roots of trees that may have candidates.
``picks``: the choices to make at one anchor.
``walk``: all combinations of the picks of one anchor.
``contention``: amounts and places shared by several picks.
``bipartite``: matchings of picks and providers.
``subtree_rules``: constraints on several picks together.
``fans``: candidates that differ in one provider.
``flat_index``: candidates of flat fleets, updated incrementally.
``provider_order``: providers in the order of their costs.
``sharing_providers``: providers that share inventory via aggregates.
``provider_filter``: providers by resources, labels and tree.
``tree_watch``: provider trees with changed candidates.
"""
