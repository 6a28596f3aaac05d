"""Counterpart of ``nova.api``, for plug-ins."""
