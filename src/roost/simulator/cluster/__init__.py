"""A simulated deployment in one thread: servers, conductors, agents and faults, all determined by a seed."""
