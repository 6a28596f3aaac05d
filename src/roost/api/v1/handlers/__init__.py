"""Handlers of ``/v1``, one file per resource."""
