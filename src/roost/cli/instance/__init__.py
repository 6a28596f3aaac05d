"""``roost instance``: the commands for instances."""
