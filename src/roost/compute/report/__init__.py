"""The report client: a host's inventories and allocations, written to a Placement API."""
