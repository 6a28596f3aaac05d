"""Shorter transfers of responses.

``compression``: gzip for long bodies.
``entity_tags``: no body for clients that have it.
"""
