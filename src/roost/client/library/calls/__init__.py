"""The calls of the library: a request, and the type of its answer.

``decision_calls``: decisions, capacity and plans.
``instance_calls``: instances and operations.
``fleet_calls``: hosts and the fleet.
"""
