"""What runs where: hosts, aggregates, server groups, instances."""
