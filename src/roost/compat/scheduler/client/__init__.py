"""Counterpart of ``nova.scheduler.client``: access of services to Placement.

``report``: the report client.
"""
