"""The report client: what a host offers, and what is held there, written to a Placement API."""
