"""Counterpart of ``nova.api.validation``: validators of extra specs."""
