"""Counterpart of ``nova.api``, for plug-ins.

``validation``: validators of extra specs.
"""
