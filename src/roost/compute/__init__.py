"""Everything that runs beside the instances of a host: agent, drivers, inventory and report client."""
