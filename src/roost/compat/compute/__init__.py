"""Counterpart of ``nova.compute``, for third-party drivers."""
