"""Comparisons of settings over recorded requests.

``policy_comparison``: recorded requests under several sets of settings. Read it first.
``recorded_acts``: the recorded requests, and departures between them.
"""
