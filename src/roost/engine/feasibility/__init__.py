"""Feasibility checks: which hosts can hold a request, with a reason for each refusal."""
