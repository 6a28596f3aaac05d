"""HTTP clients: a remote Placement API, and the server of agents."""
