"""From a ranking to a commit: draws, picks, claims and consumption.

``choice``: working state of one selection.
``draw``: random draws among the best hosts.
``host_picks``: allocation, pick and claim on a chosen host.
``alternate_hosts``: alternates in each chosen cell.
``occupy_hosts``: picks and claims of the next instances.
``move_claims``: claims of moves.
``consumption``: NUMA cells and devices taken by earlier instances.
``budget``: time budget of a search.
``build_decision``: the decision from a choice.
``act_results``: results of acts, and of those without a durable result.
``stage``: pending requests and commit items.
``observations``: requests as observed by learning weighers.
``counted_numbers``: sets of numbers of decisions.
``temporary_image``: the image of a request that is only tried.
"""
