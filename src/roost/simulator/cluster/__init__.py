"""A whole deployment in one thread, and all that may go wrong with it: servers, conductors and agents, from a seed."""
