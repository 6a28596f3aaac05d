"""``roost instance``: all that can be done with instances."""
