"""Handlers of the Placement API, one file per resource."""
