"""What runs beside the instances of a host: the agent's view of what its host offers."""
