"""Counterpart of ``nova.virt``, for third-party filters and drivers."""
