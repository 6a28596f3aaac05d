"""Explanations: rejections, nearest hosts, and changes that would help; exports. Read ``explainer`` first.

``explainer``: explanation of a decision in full.
``explain_several``: the same for several instances.
``verdict_matrix``: verdicts of every check on every host.
``relaxations``: changes of a request that ask for less.
``ranking_margins``: shares of weighers, and multipliers for a tie with the winner.
``capacity_count``: counts of further instances that fit.
``changed_fleet``: a fork of the fleet with hosts added or removed.
``refusal_summary``: refusals by reason and request.
``rebuild_check``: check of a host for a rebuild.
``fleet_export``: the fleet as a document for decisions elsewhere.
``document_names``: parts of a document by uuid or name.
``decision_rows``: stored decisions by uuid.
``decision_replay``: replays of stored decisions.
``frozen_clock``: fixed clock and random numbers.
"""
