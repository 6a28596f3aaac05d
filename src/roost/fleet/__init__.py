"""The fleet: hosts, aggregates, server groups and instances."""
