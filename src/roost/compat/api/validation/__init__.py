"""Counterpart of ``nova.api.validation``.

``extra_specs``: validators of extra specs, by namespace.
"""
